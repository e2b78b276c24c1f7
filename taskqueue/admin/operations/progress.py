"""How far an operation is, as its page and the list show it."""

from __future__ import annotations

from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from taskqueue.display import badge, moment, short_duration
from taskqueue.models import Operation
from taskqueue.models.operation import OperationStatus
from taskqueue.monitoring.read_models.base import Viewer
from taskqueue.monitoring.read_models.operation import operation_details


def number(value: int) -> str:
    """With its thousands apart."""
    return number_format(value, use_l10n=True, force_grouping=True)


def figures(operation: Operation, verb_label: object, viewer: Viewer) -> dict[str, Any]:
    """The context of the refreshed part of the page."""
    progress = operation_details(operation, viewer)
    has_ended_early = operation.status in (OperationStatus.FAILED, OperationStatus.CANCELLED)
    return {
        "operation": operation,
        "verb_label": verb_label,
        "status": badge(operation.status),
        "progress": progress,
        "percent": None if has_ended_early else progress.percent,
        "matched": number(progress.matched),
        "done": number(progress.done),
        "refused": number(progress.refused),
        "held": number(progress.held) if progress.held else "",
        "expected": "" if progress.expected is None else number(progress.expected),
        "pace": "" if progress.pace is None else number_format(progress.pace, 0),
        "left": short_duration(progress.left_seconds),
        "started_at": moment(operation.started_at),
        "progressed_at": moment(operation.progressed_at),
        "finished_at": moment(operation.finished_at),
    }


def of_how_many(operation: Operation) -> str:
    """Progress in the cell of a list."""
    if operation.expected is None or operation.finished_at is not None:
        return number(operation.done)
    return _("%(done)s of %(expected)s") % {
        "done": number(operation.done),
        "expected": number(operation.expected),
    }
