"""How many tasks an operation would come to, as far as that is quickly told, and some of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.control.task_verbs import bulk_verb
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.operations.walking import Look, fitting, narrowed, next_look, next_window
from taskqueue.models import Task

# Tasks that are counted at most.
CAP = 10_000
# Looks that find fewer, each of some statements; then it is left open how many there are.
MOST_LOOKS = 3


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The tasks that an operation would find now."""

    # For ids, the tasks that exist; for a filter, the same as `doable`.
    fitting: int
    # Tasks that allow the verb.
    doable: int
    # Whether there may be more.
    is_capped: bool
    # Some of those to which it may be done, the oldest first, without their arguments.
    sample: list[Task] = field(default_factory=list)


def estimate(verb_name: str, which: TaskFilter, *, sample: int = 10) -> Estimate:
    """Count, in a bounded time whatever the table holds; writes nothing. Raises ValueError."""
    verb = bulk_verb(verb_name)
    connection = project_connection()
    ids: list[UUID] = []
    is_capped = True
    for look in _looks(connection, which, verb):
        ids += look.ids
        if look.reached is None:
            is_capped = False
        if len(ids) >= CAP:
            break
    is_capped, ids = is_capped or len(ids) > CAP, ids[:CAP]
    if which.ids is None:
        return Estimate(
            fitting=len(ids), doable=len(ids), is_capped=is_capped,
            sample=_tasks(connection, ids[:sample]),
        )  # fmt: skip
    allowed = sorted(verb.statuses_among(which.statuses))
    rows = fitting(connection, TaskFilter(ids=ids, statuses=allowed), verb)
    doable = sorted(rows.values_list("id", flat=True))
    return Estimate(
        fitting=len(ids), doable=len(doable), is_capped=is_capped,
        sample=_tasks(connection, doable[:sample]),
    )  # fmt: skip


def _looks(connection: BaseDatabaseWrapper, which: TaskFilter, verb: TaskVerb) -> Iterator[Look]:
    chosen, last = narrowed(which, verb), newest_id(connection)
    look = next_look(connection, chosen, verb, after=None, last=last, limit=CAP + 1)
    yield look
    for _ in range(MOST_LOOKS - 1):
        if look.reached is None:
            return
        look = next_window(connection, chosen, verb, after=look.reached, last=last, limit=CAP + 1)
        yield look


def newest_id(connection: BaseDatabaseWrapper) -> UUID | None:
    """The greatest id of any task."""
    ids = Task.objects.using(connection.alias).order_by("-id").values_list("id", flat=True)
    return ids.first()


def _tasks(connection: BaseDatabaseWrapper, ids: list[UUID]) -> list[Task]:
    rows = Task.objects.using(connection.alias).filter(id__in=ids).order_by("id")
    return list(rows.only("id", "name", "queue_name", "status", "enqueued_at", "error_class"))
