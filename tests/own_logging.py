"""The settings of tests, in a project whose LOGGING says where its log goes."""

from __future__ import annotations

from typing import Any

from tests.settings import *  # noqa: F403

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"own": {"format": "OWN %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "own"}},
    "root": {"level": "WARNING", "handlers": ["console"]},
    "loggers": {"taskqueue": {"level": "INFO"}, "chatty": {"level": "ERROR"}},
}
