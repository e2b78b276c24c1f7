"""Verbs: the actions of people, each declared once for all interfaces.

The admin, the REST API and the command line parse a request, call `act_by` or the verb for many
rows, and show the result. The tables are `task_verbs` and, with the verbs of all other nouns,
`taskqueue.engine.verbs`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.transaction import atomic, set_rollback
from django.utils.translation import override

from taskqueue.access.permissions import STOP
from taskqueue.core.refusals import joined
from taskqueue.core.refusals import refusal as _
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import person
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.control.locking import (
    Seen,
    Selection,
    Statuses,
    TaskId,
    id_of,
    require_seen,
    status_of,
    task_of_step,
)
from taskqueue.engine.lost import is_held_by_lost
from taskqueue.exceptions import InvalidTask, TaskDoesNotExist, TransitionRefused
from taskqueue.models import Task

# Text for people, translated when it is shown.
Words = Any
# `each(selection, **arguments)`: do it to those of the tasks that allow it; return the result for
# each of these.
Each = Callable[..., Mapping[UUID, Any]]
Arguments = Mapping[str, Any]

# How often a verb follows a task that changes between its look and its act.
TRIES = 10


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """An argument of a verb, besides the person and the reason."""

    name: str
    # Such as `moment` or `changes`: each face has one field for each kind.
    kind: str
    # Check it and make it fit for JSON, for an operation. Raises `InvalidTask`.
    to_json: Callable[[Any], Any]
    from_json: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Verb:
    """One verb on one noun, with its words; `%(name)s` in them stands for the subject."""

    noun: str
    name: str
    # All are needed.
    permissions: tuple[str, ...]
    # `function(key, *, by, reason, seen, **arguments)`; None where no face does it to one.
    function: Callable[..., Any] | None = None
    # The text of a button.
    label: Words
    # Its words in an audit entry, such as `pause schedule`.
    entry: Words
    done: Words = ""
    # Its effect, for people who are about to confirm it.
    effect: Words = ""
    # One line for the command line and the REST schema, in English.
    help: str = ""
    # Further sentences of the REST schema.
    details: str = ""
    is_grave: bool = False

    def is_for(self, user: Any) -> bool:
        """Whether the user may do it at all."""
        return all(user.has_perm(permission) for permission in self.permissions)

    def told(self, name: str) -> str:
        """Return the message that it is done to the subject of that name."""
        return str(self.done) % {"name": name}

    def act(
        self, key: Any, *, by: object = "", reason: str = "", seen: Seen = None, **arguments: Any
    ) -> Any:
        """Do it to one subject. Raises `ChangedMeanwhile` if that is not as the caller saw it."""
        assert self.function is not None
        return self.function(key, by=by, reason=reason, seen=seen, **arguments)

    def act_by(self, user: Any, key: Any, **arguments: Any) -> Any:
        """Do it as far as the user may; permissions to do it at all are the caller's to check."""
        return self.act(key, by=user, **arguments)


def verb_table(*verbs: Verb) -> dict[str, Verb]:
    """Return verbs on one noun by their names."""
    return {verb.name: verb for verb in verbs}


@dataclass(frozen=True, kw_only=True)
class TaskVerb(Verb):
    """A verb on tasks."""

    noun: str = "task"
    # Statuses that allow it.
    statuses: Statuses
    # Further statuses that allow it if somebody asks for them: for one task, or in a filter.
    also_of_one: Statuses = frozenset()
    each: Each
    # Whether it is a bulk action and an operation too.
    for_many: bool = True
    parameters: tuple[Parameter, ...] = ()
    # Whether it is needed at once, so that people get no time to undo it when done to many.
    is_urgent: bool = False
    # Whether it may end an attempt that runs, which takes the permission to stop tasks.
    ends_attempt: bool = False
    # Narrow tasks in these statuses to those that it can be done to.
    doable: Callable[[BaseDatabaseWrapper, QuerySet[Task], Collection[str]], QuerySet[Task]] = (
        lambda connection, tasks, statuses: tasks
    )
    # Whether a task in an allowed status has nothing left for it to do.
    is_done: Callable[[Task], bool] = lambda task: False
    # The reason then, behind the task's id.
    nothing_left: str = ""
    # Statuses in which a task of a workflow does not allow it, and why not, behind the task's id.
    not_in_workflow: Statuses = frozenset()
    in_workflow: str = ""
    # `of_step(connection, task, *, by, reason, seen)`: do it to one such task, under the lock of
    # its workflow. Raises `TransitionRefused`.
    of_step: Callable[..., Any] | None = None
    # Return the tasks that the arguments do not fit, with the reasons, by id.
    refusals: Callable[..., Mapping[UUID, str]] = lambda *given, **arguments: {}
    # The title of the page that confirms it for many.
    title: Words = ""
    # Which tasks allow it, as a sentence.
    allowed: Words
    # Its words in the history of a task.
    past: Words

    def fitting(
        self, connection: BaseDatabaseWrapper, tasks: QuerySet[Task], statuses: Collection[str]
    ) -> QuerySet[Task]:
        """Narrow tasks in these statuses to those that it can be done to."""
        found = self.doable(connection, tasks, statuses)
        if self.not_in_workflow:
            found = found.exclude(step__isnull=False, status__in=sorted(self.not_in_workflow))
        return found

    # One

    def act(
        self,
        key: TaskId,
        *,
        by: object = "",
        reason: str = "",
        seen: Seen = None,
        statuses: Statuses | None = None,
        **arguments: Any,
    ) -> Any:
        """Do it to one task, if it is in one of `statuses`; return the result.

        Raises `TaskDoesNotExist`, `TransitionRefused` if the task does not allow it, and its
        `ChangedMeanwhile` if the task is not as the caller saw it.
        """
        task_id = id_of(key)
        connection = project_connection()
        allowed = self.statuses | self.also_of_one if statuses is None else statuses
        selection = Selection(
            connection=connection, ids=[task_id], statuses=allowed, person=person(by, reason)
        )
        task = self.of_step and task_of_step(connection, task_id)
        if self.of_step and task and task.status in allowed & self.not_in_workflow:
            return self.of_step(connection, task, by=by, reason=reason, seen=seen)
        for _try in range(TRIES):
            with atomic(using=connection.alias):
                _require_seen(selection, seen)
                done = self.each(selection, **arguments)
                if task_id not in done:
                    # A task that was claimed meanwhile is locked by now. In a transaction of the
                    # caller it would stay so, and who records it has its lease, which comes first.
                    set_rollback(True, using=connection.alias)
            if task_id in done:
                return done[task_id]
            status = status_of(connection, task_id)
            if reason_against := self._refusal(task_id, status, allowed):
                raise TransitionRefused(reason_against)
        raise TransitionRefused(_(
            "Task {task_id} changed {tries} times meanwhile. Try it again.",
            task_id=task_id, tries=TRIES,
        ))  # fmt: skip

    def act_by(self, user: Any, key: Any, **arguments: Any) -> Any:
        """Do it as far as the user may: what ends an attempt takes the permission to stop."""
        return super().act_by(user, key, **{"statuses": self.statuses_of(user), **arguments})

    def statuses_of(self, user: Any) -> Statuses:
        """The statuses in which the user may do it to one task."""
        statuses = self.statuses | self.also_of_one
        if self.ends_attempt and not user.has_perm(STOP):
            return statuses - {TaskStatus.RUNNING}
        return statuses

    def is_for_task(self, user: Any, task: Task) -> bool:
        """Whether the user may do it to the task as it stands."""
        may = self.is_for(user) and task.status in self.statuses_of(user)
        return may and self.fits(task)

    def fits(self, task: Task) -> bool:
        """Whether the task allows it as it stands."""
        if task.status in self.also_of_one:
            return is_held_by_lost(project_connection(), task.id)
        if task.step_id is not None and task.status in self.not_in_workflow:
            return self.of_step is not None and task.status != TaskStatus.SUCCEEDED
        return task.status in self.statuses and not self.is_done(task)

    def _refusal(self, task_id: UUID, status: str, allowed: Statuses) -> str:
        """The error for a task of that status; empty where another try may succeed."""
        connection = project_connection()
        if status in allowed & self.not_in_workflow and task_of_step(connection, task_id):
            return _("Task {task_id} {reason}", task_id=task_id, reason=self.in_workflow)
        if status in allowed & FINISHED and self.nothing_left:
            return _("Task {task_id} {reason}", task_id=task_id, reason=self.nothing_left)
        if status in allowed - self.also_of_one:
            return ""
        with override("en"):
            reason: str = _(
                "Task {task_id} is {status}. {allowed}",
                task_id=task_id, status=status, allowed=self.allowed,
            )  # fmt: skip
        if status == TaskStatus.RUNNING and is_held_by_lost(connection, task_id):
            lost = _(" Its worker is lost: cancel() or request_stop() ends it at once.")
            return joined((reason, lost), "")
        return reason

    # Many

    def statuses_among(self, asked: Collection[str] | None) -> Statuses:
        """The statuses that allow it and that a filter asks for.

        A filter that names no statuses does not end what runs in order to retry it.
        """
        if asked is None:
            return self.statuses
        return (self.statuses | self.also_of_one) & frozenset(map(TaskStatus, asked))

    def permitted(self, which: TaskFilter, user: Any) -> TaskFilter:
        """Narrow a filter to what the user may change."""
        statuses = self.statuses_among(which.statuses)
        may = statuses & self.statuses_of(user)
        return which if may == statuses else replace(which, everything=False, statuses=sorted(may))

    def leaves_out_running(self, user: Any) -> bool:
        """Whether running tasks are left out because the user may not stop tasks."""
        return not self.statuses <= self.statuses_of(user)

    # As an operation

    def stored(self, arguments: Arguments) -> dict[str, Any]:
        """Return the arguments as JSON has them. Raises `InvalidTask`."""
        names = {parameter.name for parameter in self.parameters}
        if set(arguments) != names:
            takes = " and ".join(map(repr, sorted(names))) or "no arguments"
            raise InvalidTask(_(
                "{name} takes {takes}, not {names}.",
                name=self.name, takes=takes, names=sorted(arguments),
            ))  # fmt: skip
        return {each.name: each.to_json(arguments[each.name]) for each in self.parameters}

    def given(self, stored: Arguments) -> dict[str, Any]:
        """Return the arguments of `each`, from what is stored."""
        return {each.name: each.from_json(stored[each.name]) for each in self.parameters}


def _require_seen(selection: Selection, seen: Seen) -> None:
    """Lock the task with its attempts, and require that it is as the caller saw it."""
    if seen is None:
        return
    selection.locked_leases()
    selection.of(selection.ids).locked()
    task = selection.rows().first()
    if task is None:
        raise TaskDoesNotExist(_("There is no task {task_id}.", task_id=selection.ids[0]))
    require_seen(task, seen, _("Task {task}", task=task.id))
