"""The settings of tests, in a project whose LOGGING is the first of Django's documentation."""

from __future__ import annotations

from tests.own_logging import *  # noqa: F403
from tests.own_logging import LOGGING

LOGGING.pop("loggers")
