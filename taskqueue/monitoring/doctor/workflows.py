"""Check whether workflows advance, and whether workers have done what was due."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.utils.translation import gettext_noop

from taskqueue.core.workflow_states import FINAL_STEPS, FINAL_WORKFLOWS, StepKind, WorkflowStatus
from taskqueue.declarations.definition import registry
from taskqueue.engine.dialect import select
from taskqueue.engine.statement import Statement
from taskqueue.engine.workflows.requests import SPECS
from taskqueue.models import Step, Workflow
from taskqueue.monitoring.doctor.finding import LATE, WORKFLOWS, Finding
from taskqueue.monitoring.doctor.words import gettext as _
from taskqueue.monitoring.doctor.words import short_duration
from taskqueue.monitoring.reading import now

# How long a pause or a stop may last unreported, and how close a deadline is reported.
PAUSED_LONG, STOPPING_LONG = timedelta(days=1), timedelta(minutes=10)
NEAR = timedelta(minutes=10)
PRUNING_LATE = timedelta(hours=1)
# The most workflows that are counted, and steps whose definitions are looked up.
MOST, MOST_STEPS = 1_000, 10_000
READ_LOGS = gettext_noop(
    "Read the workers' logs; if none is running, start one: manage.py runworker."
)
Open = QuerySet[Workflow]
Look = Callable[[BaseDatabaseWrapper, Open, datetime], Iterator[Finding]]

# When the first of the tasks and children ended whose ends are not counted yet.
OLDEST_NOTE = Statement.of("""
SELECT {since oldest.ended_at}
FROM (
    SELECT min(COALESCE(task.finished_at, child.finished_at)) AS ended_at
    FROM (SELECT subject FROM taskqueue_stepend LIMIT 1000) AS note
    LEFT JOIN taskqueue_task AS task ON task.id = note.subject
    LEFT JOIN taskqueue_workflow AS child ON child.id = note.subject
) AS oldest
""")


def look_at_workflows(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield what is wrong with the workflows that have not ended."""
    rows = Workflow.objects.using(connection.alias).exclude(status__in=sorted(FINAL_WORKFLOWS))
    moment = now()
    findings = [finding for look in LOOKS for finding in look(connection, rows, moment)]
    yield from findings or [WORKFLOWS.ok(_("Workflows move on; none is paused for long."))]


def _troubled(connection: BaseDatabaseWrapper, rows: Open, now: datetime) -> Iterator[Finding]:
    found = _first(rows.exclude(trouble="").order_by("id"))
    if found is not None:
        number, first = found
        yield WORKFLOWS.problem(
            subject=str(first.id),
            seen=_(
                "Workflows could not be moved on: {number}. The first is {first}: {trouble}"
            ).format(number=number, first=_named(first), trouble=first.trouble),
            remedy=_("Fix what it says: it is tried again with each end. Read the workers' logs."),
        )


def _unknown(connection: BaseDatabaseWrapper, rows: Open, now: datetime) -> Iterator[Finding]:
    """Yield definitions that steps need and this code does not have."""
    steps = Step.objects.using(connection.alias).filter(
        workflow__in=rows.values("id"), kind__in=[StepKind.TASK, StepKind.MAP]
    )
    due = steps.exclude(status__in=sorted(FINAL_STEPS)).order_by("id")
    names: list[str] = []
    for name, specs in due.values_list("request__name", f"request__{SPECS}")[:MOST_STEPS]:
        # For a group of unlike calls, the definitions of its tasks.
        names += [spec["name"] for spec in specs] if specs else [name] if name else []
    for name in sorted(set(names)):
        if registry.find(name) is None:
            yield WORKFLOWS.warning(
                subject=name,
                seen=_(
                    "Steps of workflows run {name}, which this code does not have: {count}."
                ).format(name=name, count=names.count(name)),
                remedy=_(
                    "Keep the definition until these workflows have ended, or cancel them. "
                    "Workers that do not know it park its tasks."
                ),
            )


def _uncounted(connection: BaseDatabaseWrapper, rows: Open, now: datetime) -> Iterator[Finding]:
    [(seconds,)] = select(connection, OLDEST_NOTE)
    if seconds is not None and seconds > LATE.total_seconds():
        yield WORKFLOWS.problem(
            seen=_("Ends of tasks of workflows have waited to be counted for {age}.").format(
                age=short_duration(seconds)
            ),
            remedy=_(READ_LOGS),
        )


def _overdue(connection: BaseDatabaseWrapper, rows: Open, now: datetime) -> Iterator[Finding]:
    late = rows.filter(deadline_at__lt=now - LATE, status=WorkflowStatus.RUNNING)
    if (found := _first(late.order_by("deadline_at"))) is not None:
        number, first = found
        yield WORKFLOWS.problem(
            subject=str(first.id),
            seen=_(
                "The deadlines of workflows have passed, and no worker has ended them: "
                "{number}. The first is {first}."
            ).format(number=number, first=_named(first)),
            remedy=_(READ_LOGS),
        )
    near = rows.filter(deadline_at__gte=now, deadline_at__lt=now + NEAR)
    for first in near.order_by("deadline_at")[:1]:
        assert first.deadline_at is not None
        yield WORKFLOWS.warning(
            subject=str(first.id),
            seen=_(
                "The workflow {first} has {age} left until its deadline; {open_steps} of its "
                "{total_steps} steps have not ended."
            ).format(
                first=_named(first),
                age=short_duration((first.deadline_at - now).seconds),
                open_steps=first.open_steps,
                total_steps=first.total_steps,
            ),
            remedy=_(
                "At its deadline it is stopped, and fails. Look what it waits for: manage.py "
                "taskqueue why {id}."
            ).format(id=first.id),
        )


def _resting(connection: BaseDatabaseWrapper, rows: Open, now: datetime) -> Iterator[Finding]:
    paused = rows.filter(paused_at__lt=now - PAUSED_LONG).order_by("paused_at")
    if (found := _first(paused)) is not None:
        number, first = found
        yield WORKFLOWS.warning(
            subject=str(first.id),
            seen=_(
                "Workflows have been paused for more than a day: {number}. The first is {first}."
            ).format(number=number, first=_named(first)),
            remedy=_("Resume or cancel them, unless the pause is still needed."),
        )
    stopping = rows.filter(status=WorkflowStatus.STOPPING, stop_requested_at__isnull=False)
    long = stopping.filter(stop_requested_at__lt=now - STOPPING_LONG).order_by("stop_requested_at")
    if (found := _first(long)) is not None:
        number, first = found
        yield WORKFLOWS.warning(
            subject=str(first.id),
            seen=_(
                "Workflows have been stopping for more than ten minutes: {number}. The first "
                "is {first}."
            ).format(number=number, first=_named(first)),
            remedy=_("See what still runs: manage.py taskqueue why {id}.").format(id=first.id),
        )


def _unpruned(connection: BaseDatabaseWrapper, rows: Open, now: datetime) -> Iterator[Finding]:
    ended = Workflow.objects.using(connection.alias).filter(prune_after__lt=now - PRUNING_LATE)
    first = ended.order_by("prune_after").values_list("prune_after", flat=True).first()
    if first is not None:
        yield WORKFLOWS.warning(
            seen=_("Pruning of workflows is {age} behind.").format(
                age=short_duration((now - first).total_seconds())
            ),
            remedy=_("manage.py taskqueue prune; running workers prune by themselves."),
        )


LOOKS: tuple[Look, ...] = (_troubled, _unknown, _uncounted, _overdue, _resting, _unpruned)


def _first(rows: Open) -> tuple[str, Workflow] | None:
    """Return how many there are, with the first one; None if there are none."""
    lean = rows.defer("args", "kwargs", "context", "callbacks")
    found = list(lean[: MOST + 1])
    if not found:
        return None
    return (f"{MOST:,}+" if len(found) > MOST else f"{len(found):,}"), found[0]


def _named(workflow: Workflow) -> str:
    return f"{workflow.name} {workflow.id}"
