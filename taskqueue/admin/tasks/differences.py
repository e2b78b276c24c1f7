"""The differences between the arguments of a retry and those of the retried task."""

from __future__ import annotations

from taskqueue.declarations.call_differences import Call, Difference, differences_of
from taskqueue.declarations.definition import registry
from taskqueue.declarations.redaction import REDACTED
from taskqueue.engine.connections import database_alias
from taskqueue.models import Task
from taskqueue.monitoring.read_models.base import Viewer, visible_arguments


def differences(task: Task, viewer: Viewer) -> list[Difference]:
    """Return how the arguments differ, as far as the viewer may see both calls."""
    if task.retry_of_id is None:
        return []
    rows = Task.objects.using(database_alias()).filter(pk=task.retry_of_id)
    first = rows.only("name", "args", "kwargs").first()
    if first is None:
        return []
    calls = [Call(each.args, each.kwargs) for each in (first, task)]
    if any(
        visible_arguments(task.name, each.args, each.kwargs, viewer) is None
        for each in (first, task)
    ):
        return []
    try:
        definition = registry.find(task.name)
    except Exception:  # The project's tasks cannot be imported: the rest is still shown.
        definition = None
    found = differences_of(*calls, definition=definition)
    # Only the person who changed a secret may learn whether two secrets are equal.
    return [each for each in found if REDACTED not in (each.before, each.now)]
