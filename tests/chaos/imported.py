"""Modules that each run needs: the process from which runs are forked only imports this."""

from __future__ import annotations

import os

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.chaos.settings"
django.setup()

from taskqueue.declarations.discovery import discover_tasks  # noqa: E402
from tests.chaos import judging  # noqa: E402
from tests.chaos.faults import FAULTS  # noqa: E402
from tests.chaos.stage import Stage  # noqa: E402

discover_tasks()

__all__ = ["FAULTS", "Stage", "judging"]
