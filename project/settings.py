"""Settings of the demo project: for development, not for production.

| environment variable | meaning |
| --- | --- |
| `TASKQUEUE_DEMO_DATABASE_URL` | a PostgreSQL, `postgresql://user:password@host:port/name`; otherwise SQLite |
| `TASKQUEUE_DEMO_DIRECTORY` | where the SQLite database and the logs lie; otherwise `.demo` |
| `TASKQUEUE_DEMO_SOURCES` | the folder that the workflow reads; otherwise that of taskqueue |
"""  # noqa: E501

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from project.databases import database_settings

BASE_DIR = Path(__file__).resolve().parent.parent
DEMO_DIRECTORY = Path(os.environ.get("TASKQUEUE_DEMO_DIRECTORY") or BASE_DIR / ".demo").absolute()
DEMO_DIRECTORY.mkdir(parents=True, exist_ok=True)  # SQLite makes its file, not the folder.

DEBUG = True
SECRET_KEY = "not a secret: it guards nothing but this demo"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]

DATABASES = {"default": database_settings(DEMO_DIRECTORY)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "taskqueue",
    "project",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
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
            ],
        },
    },
]
ROOT_URLCONF = "project.urls"
STATIC_URL = "static/"

LANGUAGE_CODE = "en-us"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]  # As the browser asks for it.
TIME_ZONE = "UTC"
USE_TZ = True

# Tasks of Django's own framework run on the same tables and workers.
TASKS = {"default": {"BACKEND": "taskqueue.backend.TaskQueueBackend"}}
TASKQUEUE: dict[str, Any] = {}  # The defaults do.

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"format": "{asctime} {levelname:7} {name}: {message}", "style": "{"},
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": "plain"},
    },
    "root": {"level": "INFO", "handlers": ["console"]},
    "loggers": {
        # runserver's own, one line a request.
        "django.server": {"level": "INFO", "handlers": ["console"], "propagate": False},
    },
}
