"""The Django project for queues that are Django apps; PEERS_APP names the queue."""

from __future__ import annotations

import os

from common import SLOTS, django_database

APP = os.environ["PEERS_APP"]

SECRET_KEY = "not a secret: it guards nothing but a benchmark"
DATABASES = {"default": django_database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", APP, "django_app"]
USE_TZ = True
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
Q_CLUSTER = {
    "name": "peers",
    "orm": "default",
    "workers": SLOTS,
    "bulk": 50,
    "queue_limit": 500,
    "timeout": 600,
    "retry": 660,
    "poll": 0.2,
    "save_limit": -1,
    "log_level": "ERROR",
}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"none": {"class": "logging.NullHandler"}},
    "root": {"handlers": ["none"], "level": "ERROR"},
}
