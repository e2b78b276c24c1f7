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
# `each(selection, **arguments)`: apply the verb to those of the tasks that allow it. Return a
# result for each.
Each = Callable[..., Mapping[UUID, Any]]
Arguments = Mapping[str, Any]

# How often a verb tries again because its task changed between the check and the lock.
TRIES = 10


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """An argument of a verb, besides the person and the reason."""

    name: str
    # Such as `moment` or `changes`: each face has one form field for each kind.
    kind: str
    # Check the value and convert it to JSON, for an operation. Raises `InvalidTask`.
    to_json: Callable[[Any], Any]
    from_json: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb on a noun, with its texts; `%(name)s` in them stands for the subject."""

    noun: str
    name: str
    # The permissions, all of which are required.
    permissions: tuple[str, ...]
    # `function(key, *, by, reason, seen, **arguments)`; None if no face applies it to one subject.
    function: Callable[..., Any] | None = None
    # The text of a button.
    label: Words
    # Its name in an audit entry, such as `pause schedule`.
    entry: Words
    done: Words = ""
    # Its effect, for people who are about to confirm it.
    effect: Words = ""
    # One line for the command line and the REST schema, in English.
    help: str = ""
    # Further sentences for the REST schema.
    details: str = ""
    is_grave: bool = False

    def is_for(self, user: Any) -> bool:
        """Return whether the user may use it at all."""
        return all(user.has_perm(permission) for permission in self.permissions)

    def told(self, name: str) -> str:
        """Return the message that it was done to the subject of that name."""
        return str(self.done) % {"name": name}

    def act(
        self, key: Any, *, by: object = "", reason: str = "", seen: Seen = None, **arguments: Any
    ) -> Any:
        """Apply it to one subject.

        Raises `ChangedMeanwhile` if that is not as the caller saw it.
        """
        assert self.function is not None
        return self.function(key, by=by, reason=reason, seen=seen, **arguments)

    def act_by(self, user: Any, key: Any, **arguments: Any) -> Any:
        """Apply it as far as the user may. The caller checks the permissions to use it at all."""
        return self.act(key, by=user, **arguments)


def verb_table(*verbs: Verb) -> dict[str, Verb]:
    """Return verbs on one noun, by name."""
    return {verb.name: verb for verb in verbs}


@dataclass(frozen=True, kw_only=True)
class TaskVerb(Verb):
    """A verb on tasks."""

    noun: str = "task"
    # The statuses that allow it.
    statuses: Statuses
    # Further statuses that allow it on explicit request: for one task, or by a filter.
    also_of_one: Statuses = frozenset()
    each: Each
    # Whether it is also a bulk action and an operation.
    for_many: bool = True
    parameters: tuple[Parameter, ...] = ()
    # Whether it is urgent, so that people get no time to undo it when it is applied to many.
    is_urgent: bool = False
    # Whether it may end a running attempt, which requires the permission to stop tasks.
    ends_attempt: bool = False
    # Narrow tasks in these statuses to those that it can be applied to.
    doable: Callable[[BaseDatabaseWrapper, QuerySet[Task], Collection[str]], QuerySet[Task]] = (
        lambda connection, tasks, statuses: tasks
    )
    # Whether it has nothing left to do for a task in an allowed status.
    is_done: Callable[[Task], bool] = lambda task: False
    # The refusal in that case, as text after the task's id.
    nothing_left: str = ""
    # Statuses in which it is refused for a task of a workflow, with the text after the task's id.
    not_in_workflow: Statuses = frozenset()
    in_workflow: str = ""
    # `of_step(connection, task, *, by, reason, seen)`: apply it to one such task, under the lock of
    # its workflow. Raises `TransitionRefused`.
    of_step: Callable[..., Any] | None = None
    # Return by id the reasons why the arguments do not fit tasks.
    refusals: Callable[..., Mapping[UUID, str]] = lambda *given, **arguments: {}
    # The title of the page on which people confirm it for many tasks.
    title: Words = ""
    # A sentence that says which tasks allow it.
    allowed: Words
    # Its name in the history of a task.
    past: Words

    def fitting(
        self, connection: BaseDatabaseWrapper, tasks: QuerySet[Task], statuses: Collection[str]
    ) -> QuerySet[Task]:
        """Narrow tasks in these statuses to those that it can be applied to."""
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
        """Apply it to one task, if it is in one of `statuses`. Return the result.

        Raises `TaskDoesNotExist`, `TransitionRefused` if the task does not allow it, and
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
                    # A task that was claimed meanwhile is locked by now. In the caller's
                    # transaction it would stay locked, and the session that records it has its
                    # lease, which must be locked first.
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
        """Apply it as far as the user may; ending an attempt needs the permission to stop."""
        return super().act_by(user, key, **{"statuses": self.statuses_of(user), **arguments})

    def statuses_of(self, user: Any) -> Statuses:
        """Return the statuses in which the user may apply it to one task."""
        statuses = self.statuses | self.also_of_one
        if self.ends_attempt and not user.has_perm(STOP):
            return statuses - {TaskStatus.RUNNING}
        return statuses

    def is_for_task(self, user: Any, task: Task) -> bool:
        """Return whether the user may apply it to the task in its current state."""
        may = self.is_for(user) and task.status in self.statuses_of(user)
        return may and self.fits(task)

    def fits(self, task: Task) -> bool:
        """Return whether the task allows it in its current state."""
        if task.status in self.also_of_one:
            return is_held_by_lost(project_connection(), task.id)
        if task.step_id is not None and task.status in self.not_in_workflow:
            return self.of_step is not None and task.status != TaskStatus.SUCCEEDED
        return task.status in self.statuses and not self.is_done(task)

    def _refusal(self, task_id: UUID, status: str, allowed: Statuses) -> str:
        """Return the error for a task of that status; empty if another try may succeed."""
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
        """Return the statuses that allow it and that a filter asks for.

        If a filter names no statuses, running tasks are not ended in order to retry them.
        """
        if asked is None:
            return self.statuses
        return (self.statuses | self.also_of_one) & frozenset(map(TaskStatus, asked))

    def permitted(self, which: TaskFilter, user: Any) -> TaskFilter:
        """Narrow a filter to tasks that the user may change."""
        statuses = self.statuses_among(which.statuses)
        may = statuses & self.statuses_of(user)
        return which if may == statuses else replace(which, everything=False, statuses=sorted(may))

    def leaves_out_running(self, user: Any) -> bool:
        """Return whether running tasks are left out because the user may not stop tasks."""
        return not self.statuses <= self.statuses_of(user)

    # As an operation

    def stored(self, arguments: Arguments) -> dict[str, Any]:
        """Return the arguments as JSON. Raises `InvalidTask`."""
        names = {parameter.name for parameter in self.parameters}
        if set(arguments) != names:
            takes = " and ".join(map(repr, sorted(names))) or "no arguments"
            raise InvalidTask(_(
                "{name} takes {takes}, not {names}.",
                name=self.name, takes=takes, names=sorted(arguments),
            ))  # fmt: skip
        return {each.name: each.to_json(arguments[each.name]) for each in self.parameters}

    def given(self, stored: Arguments) -> dict[str, Any]:
        """Return the arguments of `each` from their stored form."""
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
