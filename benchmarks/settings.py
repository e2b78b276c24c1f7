"""Settings of the processes that a benchmark starts.

| environment variable | meaning |
| --- | --- |
| `TASKQUEUE_BENCHMARK_DATABASE` | the entry of `DATABASES`, as JSON |
| `TASKQUEUE_BENCHMARK_STATEMENTS` | a file that grows by one byte with every statement |
| `TASKQUEUE_BENCHMARK_BARE` | set: a project without taskqueue, to compare its memory with |
"""

from __future__ import annotations

import json
import os

DATABASES = {"default": json.loads(os.environ["TASKQUEUE_BENCHMARK_DATABASE"])}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
]
if not os.environ.get("TASKQUEUE_BENCHMARK_BARE"):
    INSTALLED_APPS += ["taskqueue", "benchmarks.apps.BenchmarksConfig"]

SECRET_KEY = "not a secret: it guards nothing but a benchmark"
TIME_ZONE = "UTC"
USE_TZ = True
TASKS = {"default": {"BACKEND": "taskqueue.backend.TaskQueueBackend"}}
