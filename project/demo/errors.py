"""The errors of the demo."""

from __future__ import annotations

from django.core.management import CommandError


class DemoError(CommandError):
    """The demo cannot go on; the message says why and what to do."""
