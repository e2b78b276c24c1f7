"""Settings of the tests, and of the worker processes that the tests start.

| environment variable | meaning |
| --- | --- |
| `TASKQUEUE_TEST_DATABASE` | `sqlite` (the default) or `postgresql` |
| `TASKQUEUE_TEST_DATABASE_URL` | a PostgreSQL to use in place of the embedded one |
| `TASKQUEUE_TEST_SEED` | what of large matrices is run: a number, told by the header of each run |
| `TASKQUEUE_TEST_POOLER` | `transaction` or `session`: workers use PgBouncer in that mode |
| `TASKQUEUE_TEST_CONNECTION` | set by the tests: the test database, as JSON, for workers to open |
| `TASKQUEUE_TEST_MAIL` | a folder for mail; without it mail is kept in memory |
| `TASKQUEUE_TEST_SETTINGS` | set by the tests: the setting `TASKQUEUE`, as JSON |
"""

from __future__ import annotations

import json
import os
from typing import Any

import django

from project.postgres import settings_from_url
from taskqueue.core.retries import Fixed


def _sqlite() -> dict[str, Any]:
    """In memory unless a test database is named: conftest names a file, for workers to share."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
        "OPTIONS": {
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
        },
    }


def _postgresql() -> dict[str, Any]:
    """The server named by the environment; conftest fills in the embedded one's address."""
    if url := os.environ.get("TASKQUEUE_TEST_DATABASE_URL"):
        return settings_from_url(url)
    return {"ENGINE": "django.db.backends.postgresql", "NAME": "taskqueue"}


DEFAULT_DATABASES = {"sqlite": _sqlite, "postgresql": _postgresql}
DATABASE = os.environ.get("TASKQUEUE_TEST_DATABASE", "sqlite")
if DATABASE not in DEFAULT_DATABASES:
    raise ValueError(
        f"TASKQUEUE_TEST_DATABASE={DATABASE!r} is unknown. Choose one of {list(DEFAULT_DATABASES)}."
    )
CONNECTION = json.loads(os.environ.get("TASKQUEUE_TEST_CONNECTION", "{}"))

DATABASES = {"default": {**DEFAULT_DATABASES[DATABASE](), **CONNECTION}}


def mail_settings(folder: str) -> dict[str, Any]:
    """Return settings by which mails are files of a folder; without one they stay in memory."""
    backend = f"django.core.mail.backends.{'filebased' if folder else 'locmem'}.EmailBackend"
    if django.VERSION >= (6, 1):
        # Without it, each mail warns that there will be no default one.
        options = {"file_path": folder} if folder else {}
        return {"MAILERS": {"default": {"BACKEND": backend, "OPTIONS": options}}}
    return {"EMAIL_BACKEND": backend, "EMAIL_FILE_PATH": folder} if folder else {}


globals().update(mail_settings(os.environ.get("TASKQUEUE_TEST_MAIL", "")))
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.admin",
    "django.contrib.staticfiles",
    "drf_spectacular_sidecar",
    "taskqueue",
    "tests.sample",
]
if CONNECTION:
    # A worker's many processes each load what they have no use for.
    FOR_PAGES = ("admin", "messages", "sessions", "sidecar", "staticfiles")
    INSTALLED_APPS = [app for app in INSTALLED_APPS if not app.endswith(FOR_PAGES)]
MIDDLEWARE = [
    "tests.csp.StrictPolicy",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
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

ROOT_URLCONF = "tests.urls"
SECRET_KEY = "not a secret: it guards nothing but these tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STATIC_URL = "static/"
TIME_ZONE = "UTC"
USE_TZ = True

TASKQUEUE: dict[str, Any] = json.loads(os.environ.get("TASKQUEUE_TEST_SETTINGS", "{}"))

# Tasks of Django's own framework: most run on our backend, some are declared for another one.
_FRAMEWORK = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"
TASKS: dict[str, Any] = {
    "default": {"BACKEND": "taskqueue.backend.TaskQueueBackend", "QUEUES": []},
    "immediate": {"BACKEND": f"{_FRAMEWORK}.backends.immediate.ImmediateBackend", "QUEUES": []},
    "persistent": {
        "BACKEND": "taskqueue.backend.TaskQueueBackend",
        "QUEUES": ["default", "patient"],
        "OPTIONS": {"max_attempts": 4, "backoff": Fixed(0)},
    },
}
