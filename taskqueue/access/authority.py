"""Permissions for what people do to tasks and schedules: one rule for the admin and REST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from taskqueue.access.permissions import EDIT_SCHEDULES, ENQUEUE, OPERATE, PURGE, STOP
from taskqueue.core.states import PENDING, TaskStatus
from taskqueue.engine import control
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control import TaskFilter, cancel_many
from taskqueue.engine.control.abandoned import is_held_by_lost
from taskqueue.engine.control.locking import ALLOWED, TaskId, statuses_for
from taskqueue.engine.multi_worker import has_all_successes
from taskqueue.models import Task

NEEDED: Mapping[str, tuple[str, ...]] = {
    "enqueue": (ENQUEUE,),
    "retry": (OPERATE,),
    "retry_with": (OPERATE, ENQUEUE),
    "run_now": (OPERATE,),
    "reschedule": (OPERATE,),
    "update": (OPERATE,),
    "cancel": (OPERATE,),
    "stop": (STOP,),
    "duplicate": (OPERATE, ENQUEUE),
    "delete": (PURGE,),
}
"""The permissions that each verb takes, all of them: what makes a new task asks for ENQUEUE."""
_MAKES_TASKS = (EDIT_SCHEDULES, ENQUEUE)
SCHEDULE_NEEDED: Mapping[str, tuple[str, ...]] = {
    "create": _MAKES_TASKS,
    "edit": _MAKES_TASKS,
    "run_now": _MAKES_TASKS,
    "resume": _MAKES_TASKS,
    "pause": (EDIT_SCHEDULES,),
    "disable": (EDIT_SCHEDULES,),
    "delete": (EDIT_SCHEDULES,),
}
"""The same for the verbs on schedules: whoever lets one make tasks may enqueue them."""


def may(user: Any, verb: str) -> bool:
    """Whether the user may do it to tasks at all."""
    return all(user.has_perm(each) for each in NEEDED[verb])


def may_schedule(user: Any, verb: str) -> bool:
    """Whether the user may do it to schedules."""
    return all(user.has_perm(each) for each in SCHEDULE_NEEDED[verb])


def fits(task: Task, verb: str) -> bool:
    """Whether the verb would not be refused for the status of the task."""
    if verb == "retry" and has_all_successes(task):
        return False
    if verb == "retry" and task.status == TaskStatus.RUNNING:
        return is_held_by_lost(project_connection(), task.id)
    return task.status in ALLOWED["retry" if verb == "retry_with" else verb]


def may_on(task: Task, verb: str, user: Any) -> bool:
    """Whether the user may do it to the task in its status: what ends an attempt asks for STOP."""
    ends_attempt = verb in ("cancel", "retry") and task.status == TaskStatus.RUNNING
    return may(user, verb) and (not ends_attempt or user.has_perm(STOP))


def verbs_for(task: Task, user: Any) -> list[str]:
    """What this user may do to the task as it stands."""
    verbs = [verb for verb in NEEDED if verb != "enqueue" and may_on(task, verb, user)]
    return [verb for verb in verbs if fits(task, verb)]


def permitted(which: TaskFilter, verb: str, user: Any) -> TaskFilter:
    """Narrow a filter to what the user may change: to end what runs takes `stop`, too."""
    statuses = statuses_for(verb, which.statuses)
    if verb not in ("cancel", "retry") or TaskStatus.RUNNING not in statuses:
        return which
    if user.has_perm(STOP):
        return which
    return replace(which, everything=False, statuses=sorted(statuses - {TaskStatus.RUNNING}))


def leaves_out_running(verb: str, user: Any) -> bool:
    """Whether what runs is left out for want of that permission."""
    return verb == "cancel" and not user.has_perm(STOP)


def retry(task: TaskId, *, by: Any, reason: str = "") -> None:
    """Run it again; an attempt of a lost worker is ended only by a user who may stop tasks."""
    act = control.retry if by.has_perm(STOP) else control.retry_finished
    act(task, by=by, reason=reason)


def cancel_waiting(task: TaskId, *, by: object = "", reason: str = "") -> str:
    """Cancel it unless it has started by now; the status that it has then, else nothing.

    For those who may not stop what runs.
    """
    which = TaskFilter(ids=[task], statuses=sorted(PENDING))
    done = cancel_many(which, by=by, reason=reason).done
    return TaskStatus.CANCELLED.value if done else ""
