"""The Celery application: `celery -A controlplane.celery worker` and `… beat`.

Tasks are short and idempotent, take ids, and are sent on commit. What must not be lost is a row in
the database; a task is only a nudge, and the sweep sends it again.
"""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")

app = Celery("headwater")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()  # in every thread, not only in the one that imports this
app.autodiscover_tasks()
