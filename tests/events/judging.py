"""Judging what was heard: events are the committed changes, each once, with rising numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from taskqueue.core.states import FINISHED
from taskqueue.models import Event, Lease, Task

ENDS = {f"task.{status}": status for status in FINISHED}

MANY = ("task.started", "task.progressed")


def complaints(*, handler: str = "", handled: str = "") -> list[str]:
    """What is wrong with the events of tasks that were enqueued and ran while all were wanted.

    Each event of the kind `handled`, of tasks that are no handler's, is to have one task of the
    definition `handler`.
    """
    return [*_numbers(), *_changes(), *(_effects(handler, handled) if handler else ())]


def _numbers() -> Iterator[str]:
    numbers = list(Event.objects.order_by("seq").values_list("seq", flat=True))
    if numbers != list(range(1, len(numbers) + 1)):
        yield "The numbers of events have gaps, or are missing."


def _changes() -> Iterator[str]:
    heard = Counter(Event.objects.exclude(task_id=None).values_list("kind", "task_id", "attempt"))
    for (kind, task_id, attempt), number in heard.items():
        # An attempt that was handed back before it ran is begun anew under its number.
        if number > 1 and kind not in MANY:
            yield f"{kind} of {task_id}, attempt {attempt}, was heard {number} times."
    told = {(kind, task_id) for kind, task_id, _ in heard}
    for task_id, status in Task.objects.values_list("id", "status"):
        if ("task.enqueued", task_id) not in told:
            yield f"The enqueue of {task_id} was not heard."
        ends = {kind for kind, of in told if of == task_id and kind in ENDS}
        wanted = {f"task.{status}"} if status in FINISHED else set()
        if ends != wanted:
            yield f"{task_id} is {status}, and {sorted(ends)} was heard."
    for task_id, attempt, status in Lease.objects.values_list("task_id", "attempt", "status"):
        if not heard["task.started", task_id, attempt]:
            yield f"The start of {task_id}, attempt {attempt}, was not heard."
        if bool(heard["task.lost", task_id, attempt]) != (status == "lost"):
            yield f"Attempt {attempt} of {task_id} is {status}; its loss was not heard as such."


def _effects(handler: str, handled: str) -> Iterator[str]:
    events = Event.objects.filter(kind=handled).exclude(name=handler)
    wanted = Counter(events.values_list("seq", flat=True))
    rows = Task.objects.filter(name=handler).values_list("args", flat=True)
    made = Counter(args[0]["seq"] for args in rows)
    for seq in sorted((wanted - made).keys()):
        yield f"Event {seq} has caused nothing."
    for seq in sorted((made - wanted).keys()):
        yield f"Event {seq} has caused a task that it should not have."
