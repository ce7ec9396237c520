"""Settings of the tests: the product's, in a home that is thrown away, with no server to reach."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_home = tempfile.mkdtemp(prefix="headwater-tests-")
Path(_home, "static").mkdir()
atexit.register(shutil.rmtree, _home, ignore_errors=True)
os.environ["HEADWATER_HOME"] = _home
os.environ["HEADWATER_SECRET_KEY"] = "only for tests"

from controlplane.settings import *  # noqa: E402, F403

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
if not os.environ.get("HEADWATER_REDIS_URL"):  # else `make test-postgres` runs one
    CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CELERY_BROKER_URL = "memory://"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
