"""The details of a task: its arguments, its options, and the tasks that belong together with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import chain
from typing import Any
from uuid import UUID

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue.admin.links import Links, kept_tasks
from taskqueue.display import badge, moment, preformatted, short_duration
from taskqueue.models import Audit, Task
from taskqueue.monitoring.read_models.base import fields_of
from taskqueue.monitoring.read_models.task import TaskDetails

LONGEST_OPEN, MOST_OPEN_LINES = 2_000, 40
"""Longer values are folded."""


def folded_json(value: Any) -> SafeString:
    """Show a value as indented JSON; a long one is folded."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if len(text) <= LONGEST_OPEN and text.count("\n") < MOST_OPEN_LINES:
        return preformatted(text)
    size = ngettext("%(count)s character", "%(count)s characters", len(text)) % {
        "count": f"{len(text):,}",
    }  # fmt: skip
    return format_html("<details><summary>{}</summary>{}</details>", size, preformatted(text))


def details(task: TaskDetails) -> list[tuple[str, object]]:
    """The fields that have a label, without those that are empty or say nothing new."""
    found = [
        (str(field.metadata["label"]), _value(task, name))
        for name, field in fields_of(TaskDetails).items()
        if field.metadata.get("label") and not _is_left_out(task, name)
    ]
    return [(label, value) for label, value in found if value not in ("", None, {})]


def _is_left_out(task: TaskDetails, name: str) -> bool:
    """Whether the field says nothing: of a unique key that it lacks, or of a scope of its own."""
    if name == "unique_scope":
        return task.unique_scope == task.name
    return name in ("unique_for", "holds_unique_key") and not task.unique_key


def _value(task: TaskDetails, name: str) -> object:
    match getattr(task, name):
        case count if name == "crashes":
            return _("%(count)s of %(most)s") % {"count": count, "most": task.max_crashes}
        case bool(value):
            return _("yes") if value else _("no")
        case datetime() as value:
            return moment(value)
        case timedelta() as value:
            return short_duration(value.total_seconds())
        case dict(value) if value:
            return folded_json(value)
        case value:
            return value


def kin(
    task: Task, links: Links, retries: Sequence[Task], audits: Sequence[Audit]
) -> dict[str, list[SafeString]]:
    """Link to the tasks that it was made from and that were made from it, by their labels."""
    copies: dict[str, list[UUID | None]] = {"of": [], "as": []}
    for entry in audits:
        if entry.verb == "duplicate":
            how, _space, task_id = entry.detail.partition(" ")
            with suppress(KeyError, ValueError):
                copies[how].append(UUID(task_id))
    ids = {
        _("Retry of"): [task.retry_of_id],
        _("Duplicate of"): copies["of"],
        _("Duplicates"): copies["as"],
    }
    kept = kept_tasks(chain.from_iterable(ids.values()))
    return {
        **{
            label: [links.to_task(each, is_kept=each in kept) for each in those if each]
            for label, those in ids.items()
        },
        _("Retried as"): [
            format_html("{} {}", links.to_row(Task, retry.pk, retry.pk), badge(retry.status))
            for retry in retries
        ],
    }
