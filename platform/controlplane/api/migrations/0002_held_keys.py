"""A key is held by one request while that asks an engine."""

from django.db import migrations, models
from django.utils import timezone


class Migration(migrations.Migration):
    dependencies = [("api", "0001_kept_answers")]

    operations = [
        migrations.AddField(
            model_name="keptanswer",
            name="held_until",
            field=models.DateTimeField(default=timezone.now),
            preserve_default=False,
        ),
    ]
