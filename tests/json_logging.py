"""The settings of tests, in a project that logs JSON."""

from __future__ import annotations

from typing import Any

from tests.settings import *  # noqa: F403

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"context": {"()": "taskqueue.logs.ContextFilter"}},
    "formatters": {"json": {"()": "taskqueue.logs.JSONFormatter"}},
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "json",
            "filters": ["context"],
        }
    },
    "loggers": {"django": {"handlers": []}},
    "root": {"level": "INFO", "handlers": ["console"]},
}
