"""Django's settings: twelve-factor, with an embedded default for one machine.

Every variable that these settings read is listed in `environment.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

from controlplane import environment
from controlplane.database import database

BASE_DIR = Path(__file__).resolve().parents[2]
HEADWATER_HOME = environment.home(BASE_DIR)
HEADWATER_ARTIFACTS = HEADWATER_HOME / "artifacts"
HEADWATER_SAVEPOINTS = HEADWATER_HOME / "savepoints"
HEADWATER_OUTPUT_FOLDERS = environment.words(
    "HEADWATER_OUTPUT_FOLDERS", [str(HEADWATER_HOME / "output")]
)
HEADWATER_ENGINE_URL = os.environ.get("HEADWATER_ENGINE_URL", "http://127.0.0.1:8081")
HEADWATER_REDIS_URL = (
    environment.secret("HEADWATER_REDIS_URL") or f"unix://{HEADWATER_HOME / 'run' / 'redis.sock'}"
)

HEADWATER_DEMO_SPEED = int(os.environ.get("HEADWATER_DEMO_SPEED", "86400"))

SECRET_KEY = environment.secret_key(HEADWATER_HOME)
DEBUG = environment.flag("HEADWATER_DEBUG")
ALLOWED_HOSTS = environment.words("HEADWATER_ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = environment.words("HEADWATER_TRUSTED_ORIGINS", [])

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "django_htmx",
    "controlplane.access",
    "controlplane.audit",
    "controlplane.backends",
    "controlplane.operations",
    "controlplane.jobs",
    "controlplane.snapshots",
    "controlplane.replay",
    "controlplane.live",
    "controlplane.collector",
    "controlplane.alerts",
    "controlplane.metrics",
    "controlplane.supervisor",
    "controlplane.api",
    "dashboard",
]

MIDDLEWARE = [
    "controlplane.access.streaming.StreamingMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "controlplane.access.middleware.RequestIdMiddleware",
    "controlplane.access.middleware.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "controlplane.access.middleware.RefusedMiddleware",
    "controlplane.metrics.middleware.SeriesAwayMiddleware",
]

ROOT_URLCONF = "controlplane.urls"
ASGI_APPLICATION = "controlplane.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "controlplane.access.middleware.csp_nonce",
            ],
        },
    },
]

DATABASES = {"default": database(environment.secret("HEADWATER_DATABASE_URL"), HEADWATER_HOME)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/jobs/"
LOGOUT_REDIRECT_URL = "/login/"

HEADWATER_OIDC_ISSUER = os.environ.get("HEADWATER_OIDC_ISSUER", "")
HEADWATER_OIDC_CLIENT_ID = os.environ.get("HEADWATER_OIDC_CLIENT_ID", "")
HEADWATER_OIDC_CLIENT_SECRET = environment.secret("HEADWATER_OIDC_CLIENT_SECRET")
HEADWATER_OIDC_NAME = os.environ.get("HEADWATER_OIDC_NAME", "single sign-on")

HEADWATER_INFLUX_TOKEN = environment.secret("HEADWATER_INFLUX_TOKEN")

HTTPS = environment.flag("HEADWATER_HTTPS")
SESSION_COOKIE_NAME = "headwater_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_NAME = "headwater_csrf"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
USE_X_FORWARDED_HOST = environment.flag("HEADWATER_PROXY")
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# An artifact (at most 16 MiB) goes to a temporary file; anything else in a request is small.
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

LANGUAGE_CODE = "en"
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = HEADWATER_HOME / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

vars().update(environment.mail(environment.secret("HEADWATER_EMAIL_URL")))
DEFAULT_FROM_EMAIL = os.environ.get("HEADWATER_EMAIL_FROM", "headwater@localhost")

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [HEADWATER_REDIS_URL], "prefix": "headwater"},
    },
}

CELERY_BROKER_URL = environment.celery_url(HEADWATER_REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True  # what matters is in the database, not in the broker
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A task may begin a step 10 s after its start, and an engine may take 50 s to build a graph.
CELERY_TASK_SOFT_TIME_LIMIT = 75
CELERY_TASK_TIME_LIMIT = 90
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 150,  # above the hard time limit: no task runs twice while it runs
    "global_keyprefix": "celery:",
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 2, "interval_start": 0.1, "interval_max": 0.3}
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE = {
    "resume operations": {
        "task": "controlplane.operations.tasks.sweep",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "keep jobs running": {
        "task": "controlplane.jobs.tasks.keep_running",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "look at alert rules": {
        "task": "controlplane.alerts.tasks.evaluate",
        "schedule": 10.0,
        "options": {"expires": 10.0},
    },
    "tell of alerts": {
        "task": "controlplane.alerts.tasks.deliver",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "run due savepoint schedules": {
        "task": "controlplane.snapshots.tasks.run_due_schedules",
        "schedule": 2.0,
        "options": {"expires": 2.0},
    },
    "mark, delete and verify savepoints": {
        "task": "controlplane.snapshots.tasks.keep_house",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
    "compare the catalogue with what is stored": {
        "task": "controlplane.snapshots.tasks.scan_storage",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "compare outputs of replays": {
        "task": "controlplane.replay.tasks.compare_outputs",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "forget answers of the API": {
        "task": "controlplane.api.tasks.forget_answers",
        "schedule": 600.0,
        "options": {"expires": 600.0},
    },
}
CELERY_BEAT_SCHEDULER = "controlplane.beat:Scheduler"
CELERY_BEAT_SCHEDULE_FILENAME = str(HEADWATER_HOME / "run" / "beat")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "{asctime} {levelname:<7} {name}: {message}", "style": "{"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        "django.server": {"handlers": ["console"], "propagate": False},
        "httpx": {"level": "WARNING"},  # else a line for each request to an engine
        # Else two lines for each look at what is due.
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.beat": {"level": "WARNING"},
    },
}
