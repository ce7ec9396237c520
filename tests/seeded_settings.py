"""Settings of the seeded server: the product's, in one process, with a clock that stands still.

The clocks are `controlplane.moments.now_ms` and Django's; they show what `seeded_clock` does, which
a test moves.
"""

from __future__ import annotations

import django.utils.timezone

import controlplane.moments
import seeded_clock

controlplane.moments.now_ms = seeded_clock.now_ms  # before anybody imports it by name
django.utils.timezone.now = seeded_clock.now

from controlplane.settings import *  # noqa: E402, F403

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CELERY_BROKER_URL = "memory://"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
