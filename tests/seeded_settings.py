"""Settings of the seeded server: the product's, in one process, with a clock that stands still.

The clock is `controlplane.moments.now_ms`; it shows `seeded_clock.now_ms()`, which a test moves.
"""

from __future__ import annotations

import controlplane.moments
import seeded_clock

controlplane.moments.now_ms = seeded_clock.now_ms  # before anybody imports it by name

from controlplane.settings import *  # noqa: E402, F403

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CELERY_BROKER_URL = "memory://"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
