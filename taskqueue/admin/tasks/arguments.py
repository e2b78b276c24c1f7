"""The arguments of a task, as this user may see them."""

from __future__ import annotations

import json
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue.access.permissions import VIEW_ARGUMENTS
from taskqueue.display import as_json
from taskqueue.monitoring.read_models.task import ListedTask

LONGEST_OPEN, MOST_OPEN_LINES = 2_000, 40
"""Longer values are folded."""


def shown_arguments(task: ListedTask) -> SafeString:
    """Show the arguments as JSON, or why they are hidden."""
    if task.args is None:
        told = _(
            "Hidden: this process does not know the definition, so it cannot tell which arguments "
            "are sensitive. To view them, you need the permission %(permission)s."
        ) % {"permission": VIEW_ARGUMENTS}
        return format_html("<p>{}</p>", told)
    return folded_json({"args": task.args, "kwargs": task.kwargs})


def folded_json(value: Any) -> SafeString:
    """Show a value as indented JSON; a long one is folded."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    lines = text.count("\n") + 1
    shown = as_json(value)
    if len(text) <= LONGEST_OPEN and lines <= MOST_OPEN_LINES:
        return shown
    size = ngettext("%(count)s character", "%(count)s characters", len(text)) % {
        "count": f"{len(text):,}",
    }  # fmt: skip
    return format_html("<details><summary>{}</summary>{}</details>", size, shown)
