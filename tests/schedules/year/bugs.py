"""Mistakes that must not slip through a race: each takes the place of how schedules are served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import UniqueConstraint

from taskqueue import rules
from taskqueue.engine.connections import installed, orm_transaction
from taskqueue.engine.schedules.advancing import advance
from taskqueue.models import Occurrence, Schedule, Task
from tests.chaos.bugs.planting import Planting, planting

SERVE = "taskqueue.engine.schedules.serving:Scheduler._serve"
NOMINAL = "taskqueue_occurrence_nominal"


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A mistake; its function's docstring says what is wrong."""

    plant: Callable[[Planting], None]
    says: tuple[str, ...]
    """One of these is in what the checker says."""
    is_unique: bool = True
    """Whether the database still refuses a nominal time that is there."""

    @property
    def name(self) -> str:
        """By which it is shown."""
        return self.plant.__name__


def no_lock(made: Planting) -> None:
    """Two schedulers advance the same schedule, without a lock, transaction or constraint."""

    def serve(self: Any, wrapper: BaseDatabaseWrapper, schedule_id: int, now: datetime) -> None:
        with installed(wrapper):
            advance(wrapper, Schedule.objects.get(id=schedule_id), now)

    made.replace(SERVE, serve)


def task_apart(made: Planting) -> None:
    """As before, but for the constraint: a task stays whose occurrence was refused, or not made."""
    no_lock(made)


def served_until_not_saved(made: Planting) -> None:
    """How far a schedule was served is known of its occurrences alone."""

    def serve(self: Any, wrapper: BaseDatabaseWrapper, schedule_id: int, now: datetime) -> None:
        with orm_transaction(wrapper):
            rows = Schedule.objects.filter(id=schedule_id)
            schedule = rows.select_for_update(skip_locked=True).first()
            if schedule is not None:
                before = schedule.served_until
                advance(wrapper, schedule, now)
                rows.update(served_until=before)

    made.replace(SERVE, serve)


def advanced_first(made: Planting) -> None:
    """The advance is committed before what it stands for: who dies in between drops that."""

    def serve(self: Any, wrapper: BaseDatabaseWrapper, schedule_id: int, now: datetime) -> None:
        with installed(wrapper):
            schedule = Schedule.objects.get(id=schedule_id)
            rule = rules.from_json(schedule.rule)
            *_, last = [schedule.served_until, *rule.between(schedule.served_until, now)]
            rows = Schedule.objects.filter(id=schedule_id, served_until=schedule.served_until)
            if rows.update(served_until=last, next_at=rule.after(last)):
                with orm_transaction(wrapper):
                    advance(wrapper, schedule, now)

    made.replace(SERVE, serve)


def gaps_left_out(made: Planting) -> None:
    """What daylight saving leaves out is not made up for."""

    def through_change(*arguments: Any) -> tuple[bool, datetime]:
        return False, original(*arguments)[1]

    original = made.replace("taskqueue.rules.wall_clock:_through_change", through_change)


def another_nominal_time(made: Planting) -> None:
    """Tasks are told a time that is somewhat wrong."""

    def serve(self: Any, wrapper: BaseDatabaseWrapper, schedule_id: int, now: datetime) -> None:
        original(self, wrapper, schedule_id, now)
        wrong = Task.objects.filter(schedule_id=schedule_id).order_by("-nominal_at").first()
        if wrong is not None and wrong.nominal_at is not None and not wrong.nominal_at.second:
            wrong.nominal_at += timedelta(seconds=1)
            with installed(wrapper):
                wrong.save(update_fields=["nominal_at"])

    original = made.replace(SERVE, serve)


_ALL = (
    Bug(plant=no_lock, says=(" times", " tasks", "no occurrence"), is_unique=False),
    Bug(plant=served_until_not_saved, says=("is served until",)),
    Bug(plant=advanced_first, says=("is missing",)),
    Bug(plant=task_apart, says=("has no occurrence",)),
    Bug(plant=gaps_left_out, says=("is missing",)),
    Bug(plant=another_nominal_time, says=("has a task of",)),
)
BUGS = {bug.name: bug for bug in _ALL}


@contextmanager
def planted(bug: Bug) -> Iterator[None]:
    """The processes that are forked meanwhile have it."""
    constraint = next(each for each in Occurrence._meta.constraints if each.name == NOMINAL)
    assert isinstance(constraint, UniqueConstraint)
    if not bug.is_unique:
        with connection.schema_editor() as editor:
            editor.remove_constraint(Occurrence, constraint)
    try:
        with planting() as made:
            bug.plant(made)
            yield
    finally:
        if not bug.is_unique:
            Occurrence.objects.all().delete()
            with connection.schema_editor() as editor:
                editor.add_constraint(Occurrence, constraint)
