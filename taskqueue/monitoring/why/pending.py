"""Why a task that no worker holds does not run yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from taskqueue.conf import get_settings
from taskqueue.core.states import WAITING, LeaseStatus, TaskStatus
from taskqueue.declarations.admission import is_debounced
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.models import Lease, Task
from taskqueue.models.task import Route
from taskqueue.monitoring.counts import CAP
from taskqueue.monitoring.searching.streams import IS_APART, IS_READY, literal
from taskqueue.monitoring.why.limits import why_limited, without_tags
from taskqueue.monitoring.why.reasons import MOST_NAMED, Reason, because, listed
from taskqueue.monitoring.why.surroundings import Surroundings
from taskqueue.monitoring.why.workflows import why_blocked


def why_pending(around: Surroundings) -> list[Reason]:
    """Return everything that holds it back; if nothing does, its place in the queue."""
    if around.task.status == TaskStatus.BLOCKED:
        return [*_overdue(around), *why_blocked(around.task)]
    reasons = [
        *_overdue(around),
        *_time(around),
        *unknown(around),
        *paused(around),
        *of_several(around),
        *_stays(around),
        *without_workers(around),
    ]
    # These are only information: they do not keep any worker from taking it.
    if all(reason.code in ("more_workers", "unseated", "stays") for reason in reasons):
        limited = why_limited(around)
        reasons += limited
        if not limited:
            reasons += in_line(around)
    return reasons


def _overdue(around: Surroundings) -> Iterator[Reason]:
    task = around.task
    if task.deadline_at is not None and task.deadline_at <= around.now:
        yield because("deadline_passed", moment=task.deadline_at)
    if task.started_at is None and task.expires_at is not None and task.expires_at <= around.now:
        yield because("expired", moment=task.expires_at)


def _time(around: Surroundings) -> Iterator[Reason]:
    task = around.task
    if task.status not in WAITING:
        return
    if task.run_after <= around.now:
        yield because("due", moment=task.run_after)
    elif task.status == TaskStatus.RETRYING and around.leases:
        last = around.leases[0]
        yield because("retry_due", last.error_class, task.run_after, attempt=last.attempt)
    elif task.status == TaskStatus.RETRYING:
        yield because("retry_due", moment=task.run_after)
    else:
        debounced = task.holds_unique_key and is_debounced(task.unique_key, task.unique_for)
        yield because("debounced" if debounced else "not_due", moment=task.run_after)


def unknown(around: Surroundings) -> Iterator[Reason]:
    """Yield that no worker that has claimed it knows its definition."""
    task = around.task
    if task.parked_at is not None:
        fails_at = task.parked_at + get_settings().PARK_LIMIT
        yield because("unknown", task.name, task.parked_at, fails_at=fails_at)


def paused(around: Surroundings) -> Iterator[Reason]:
    """Yield that everything, its definition or its queue is paused."""
    for pause in around.pauses:
        why = {"by": pause.paused_by, "reason": pause.pause_reason}
        if pause.name:
            yield because("definition_paused", pause.name, pause.paused_until, **why)
        else:
            yield because("all_paused", moment=pause.paused_until, **why)
    queue = around.queue
    if queue is not None and queue.is_paused_at(around.now):
        why = {"by": queue.paused_by, "reason": queue.pause_reason}
        yield because("queue_paused", queue.name, queue.paused_until, **why)


def in_line(around: Surroundings) -> Iterator[Reason]:
    """Yield how many tasks are ahead, up to a cap, and whether all slots are busy."""
    task, takers = around.task, around.takers
    slots = sum(worker.slots for worker in takers)
    if slots and all(worker.busy >= worker.slots for worker in takers):
        own: list[Reason] = []
        yield because("slots_busy", task.queue_name, slots=slots)
    else:
        own = list(_own_slots(around))
        yield from own
    higher, equal = _ahead(task)
    if higher + equal > CAP:
        yield because("behind", task.queue_name, at_least=CAP)
    elif higher + equal:
        yield because("behind", task.queue_name, ahead=higher + equal, higher=higher)
    elif not own:  # A free slot of a worker would not be available for it.
        yield because("in_line", task.queue_name)


def _own_slots(around: Surroundings) -> Iterator[Reason]:
    """Yield that no worker has more slots for its queue or its definition."""
    task, takers = around.task, around.takers
    parts = (
        (task.queue_name, "queue_name", {each.name: each.queue_slots for each in takers}),
        (task.name, "name", {each.name: each.definition_slots for each in takers}),
    )
    for subject, column, slots in parts:
        own = {worker: most[subject] for worker, most in slots.items() if subject in most}
        if own and len(own) == len(takers):
            if not any(own.values()):
                yield because("no_own_slots", subject)
                continue
            running = Lease.objects.using(database_alias()).filter(
                worker_id__in=list(own), status=LeaseStatus.RUNNING, **{f"task__{column}": subject}
            )
            taken = Counter(map(str, running.values_list("worker_id", flat=True)))
            if all(taken[worker] >= most for worker, most in own.items()):
                yield because("own_slots_busy", subject, slots=sum(own.values()))


def _ahead(task: Task) -> tuple[int, int]:
    """Return how many tasks of higher and of equal priority are ahead, each up to the cap.

    Each part is a range of the claim's index. A task for certain workers goes before ordinary tasks
    of its priority, and after others with the same pin.
    """
    ready = Task.objects.using(project_connection().alias).filter(
        queue_name=task.queue_name, status=TaskStatus.READY.value
    )
    ordinary = ready.filter(literal(IS_READY))
    higher = _counted(ordinary.filter(priority__gt=task.priority))
    if task.route != Route.APART:
        return higher, _equal(ordinary, task)
    apart = ready.filter(literal(IS_APART), pinned_to=task.pinned_to)
    higher += _counted(apart.filter(priority__gt=task.priority))
    equal = _equal(apart, task)
    return higher, equal if task.worker_names is not None else equal + _equal(ordinary, task)


def _equal(tasks: QuerySet[Task], task: Task) -> int:
    same: Any = tasks.filter(priority=task.priority)
    earlier = _counted(same.filter(run_after__lt=task.run_after))
    return earlier + _counted(same.filter(Q(run_after=task.run_after, id__lt=task.id)))


def _counted(tasks: QuerySet[Task]) -> int:
    """Count up to the cap; the order keeps the planner from reading the table."""
    return tasks.order_by("-priority", "run_after", "id")[: CAP + 1].count()


# A time in this year or later means never.
LONG_AFTER = 9000


def of_several(around: Surroundings) -> Iterator[Reason]:
    """Yield how many workers have run it, and what keeps the next one waiting."""
    task = around.task
    if not around.is_shared:
        return
    if task.broadcast and task.workers == 0:
        yield because("unseated", task.queue_name)
        return
    yield because(
        "more_workers", task.queue_name, wanted=task.workers, done=task.successes,
        running=task.running_leases, open=task.open_slots,
    )  # fmt: skip
    if task.open_slots:
        yield from _of_the_next(around)


def _of_the_next(around: Surroundings) -> Iterator[Reason]:
    """Yield what keeps the workers waiting that have not run it yet."""
    task = around.task
    taken = {
        lease.worker_id
        for lease in around.leases
        if lease.is_shared and lease.status in (LeaseStatus.RUNNING, LeaseStatus.SUCCEEDED)
    }
    takers = {worker.name for worker in around.takers} - taken
    if task.worker_names is not None:
        alive = {worker.name for worker in around.serving}
        absent = [name for name in task.worker_names if name not in alive | taken]
        # If none of them is alive, that is reported separately.
        if absent and alive & set(task.worker_names):
            yield because("workers_absent", listed(absent))
    elif len(takers) < task.open_slots and around.serving:
        yield because("too_few_workers", task.queue_name, open=task.open_slots, able=len(takers))
    waiting = _waiting(around)
    for worker in sorted(takers & waiting.keys()):
        yield because("worker_waits", worker, waiting[worker])


def _waiting(around: Surroundings) -> dict[str, datetime]:
    """Return until when workers wait that have tried it."""
    return {
        lease.worker_id: lease.retry_at
        for lease in around.leases
        if lease.retry_at is not None
        and lease.retry_at > around.now
        and lease.retry_at.year < LONG_AFTER
    }


def _stays(around: Surroundings) -> Iterator[Reason]:
    if around.stays_on and not around.is_shared:
        yield because("stays", around.stays_on)


def without_workers(around: Surroundings) -> Iterator[Reason]:
    """Yield what is wrong with the workers that it needs; nothing if one takes tasks."""
    task, serving = around.task, around.serving
    if task.worker_names is not None:
        serving = [worker for worker in serving if worker.name in task.worker_names]
        if not serving:
            yield because("workers_absent", listed(task.worker_names))
            return
    if not serving:
        yield because("unserved", task.queue_name)
    elif untagged := list(without_tags(around)):
        yield from untagged
    elif not around.takers:
        yield because("not_taking", task.queue_name)
    elif all(worker.trouble for worker in around.takers):
        for worker in around.takers[:MOST_NAMED]:
            yield because("worker_trouble", worker.name, trouble=worker.trouble)
