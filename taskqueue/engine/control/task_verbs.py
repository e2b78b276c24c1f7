"""The table of verbs on tasks, used by all interfaces, operations and the audit.

To add a verb, write its function for many tasks beside the others, and add a row here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from taskqueue.access.permissions import ENQUEUE, OPERATE, PURGE, STOP
from taskqueue.core.refusals import refusal
from taskqueue.core.states import FINISHED, WAITING, TaskStatus
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.options import options_from_json
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.changes import (
    delete_each,
    moment_of,
    reschedule_each,
    retry_each,
    run_now_each,
    update_each,
)
from taskqueue.engine.control.copying import duplicate_each, retry_with_each
from taskqueue.engine.control.mutable_options import check_changes, refusals
from taskqueue.engine.control.tasks import UNFINISHED, cancel_each, request_stop_each
from taskqueue.engine.control.verb import Parameter, TaskVerb
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.lost import runs_on
from taskqueue.engine.multi_worker import has_all_successes
from taskqueue.engine.workflows.verbs import retry_task
from taskqueue.exceptions import InvalidTask
from taskqueue.models import Task

COPIED = refusal(
    gettext_noop(
        "belongs to a workflow, and its arguments may refer to results there. Enqueue its "
        "definition with the arguments that it is to have."
    )
)
# Reading it requires the project's code, which the process of an operation does not run.
NOT_IN_BACKGROUND = frozenset({"retry_for", "snooze_on"})
IS_SHARED = Q(workers__gt=1) | Q(broadcast=True)
# The same condition as `has_all_successes` for a row.
HAS_ALL_SUCCESSES = IS_SHARED & Q(workers__gt=0, successes__gte=F("workers"))


def _retriable(
    connection: BaseDatabaseWrapper, tasks: QuerySet[Task], statuses: Collection[str]
) -> QuerySet[Task]:
    tasks = tasks.exclude(HAS_ALL_SUCCESSES)
    return tasks.exclude(runs_on(connection)) if TaskStatus.RUNNING in statuses else tasks


def _moment_to_json(value: Any) -> str:
    """Return a moment as JSON; a duration counts from now, when the verb is requested."""
    connection = project_connection()
    return moment_of(value, dialect_for(connection).now(connection)).isoformat()


def _changes_to_json(changes: Any) -> Any:
    if not isinstance(changes, Mapping):
        text = gettext_noop("changes must be a mapping of options to values, not {changes!r}.")
        raise InvalidTask(refusal(text, changes=changes))
    for name in NOT_IN_BACKGROUND & changes.keys():
        text = gettext_noop("{name} cannot be changed in the background: change tasks one by one.")
        raise InvalidTask(refusal(text, name=name))
    checked = check_changes(changes)
    if isinstance(checked.get("deadline"), timedelta):
        checked["deadline"] = datetime.fromisoformat(_moment_to_json(checked["deadline"]))
    return {name: option_to_json(value) for name, value in checked.items()}


RUN_AFTER = Parameter(
    name="run_after",
    kind="moment",
    to_json=_moment_to_json,
    from_json=datetime.fromisoformat,
)
CHANGES = Parameter(
    name="changes", kind="changes", to_json=_changes_to_json, from_json=options_from_json
)

# By name; buttons and actions appear in this order.
TASK_VERBS: dict[str, TaskVerb] = {
    verb.name: verb
    for verb in (
        TaskVerb(
            name="retry",
            permissions=(OPERATE,),
            statuses=FINISHED,
            also_of_one=frozenset({TaskStatus.RUNNING}),
            each=retry_each,
            ends_attempt=True,
            doable=_retriable,
            is_done=has_all_successes,
            nothing_left=refusal(
                gettext_noop("has succeeded on all its workers: enqueue it again instead.")
            ),
            # Its end was counted in the workflow; another end would be counted too.
            not_in_workflow=FINISHED,
            in_workflow=refusal(
                gettext_noop("belongs to a workflow that has already registered its end.")
            ),
            of_step=retry_task,
            label=_("Retry"),
            title=_("Retry tasks"),
            effect=_("Runs again with the same arguments; earlier failures do not count."),
            allowed=_("Only finished tasks and running tasks of lost workers can be retried."),
            done=_("Task is ready to run again."),
            entry=_("retry"),
            past=_("Retried"),
            help="run finished tasks again",
            details="""Other arguments make a new task, which is the answer: 201.

            This also frees a running task whose worker is lost (`worker_lost`): the attempt ends at
            once and the task is ready, which needs the permission to stop tasks too. If the
            worker's host is only cut off from the database, the body may still run there until the
            worker reaches the database again.

            Other arguments need the permission to enqueue too, and a type marked `api=True`.
            """,
        ),
        TaskVerb(
            name="retry_with",
            permissions=(OPERATE, ENQUEUE),
            statuses=FINISHED,
            each=retry_with_each,
            not_in_workflow=FINISHED,
            in_workflow=COPIED,
            for_many=False,
            label=_("Retry with other arguments"),
            allowed=_("Only finished tasks can be retried with other arguments."),
            done=_("Task enqueued with other arguments."),
            entry=_("retry"),
            past=_("Retried"),
        ),
        TaskVerb(
            name="run_now",
            permissions=(OPERATE,),
            statuses=WAITING,
            each=run_now_each,
            label=_("Run now"),
            title=_("Run tasks now"),
            effect=_("Becomes ready without waiting for its time."),
            allowed=_("Only scheduled and retrying tasks can be run now."),
            done=_("Task is due now."),
            entry=_("run now"),
            past=_("Made due now"),
            help="make scheduled and retrying tasks ready now",
        ),
        TaskVerb(
            name="reschedule",
            permissions=(OPERATE,),
            statuses=frozenset({*WAITING, TaskStatus.READY}),
            each=reschedule_each,
            parameters=(RUN_AFTER,),
            label=_("Reschedule"),
            title=_("Reschedule tasks"),
            effect=_("Waits for another time."),
            allowed=_("Only scheduled, retrying and ready tasks can be rescheduled."),
            done=_("Task rescheduled."),
            entry=_("reschedule"),
            past=_("Rescheduled"),
            help="give waiting or ready tasks another time",
        ),
        TaskVerb(
            name="update",
            permissions=(OPERATE,),
            statuses=UNFINISHED,
            each=update_each,
            parameters=(CHANGES,),
            refusals=refusals,
            label=_("Edit"),
            title=_("Edit tasks"),
            effect=_("Gets the options that you fill in; the others stay as they are."),
            allowed=_("Only tasks that have not finished can be changed."),
            done=_("Task changed."),
            entry=_("change"),
            past=_("Changed"),
            help="change the options of tasks that have not finished",
        ),
        TaskVerb(
            name="cancel",
            permissions=(OPERATE,),
            statuses=UNFINISHED,
            each=cancel_each,
            ends_attempt=True,
            label=_("Cancel"),
            title=_("Cancel tasks"),
            effect=_("Ends now if it waits, and is asked to stop if it runs."),
            allowed=_("Only tasks that have not finished can be cancelled."),
            done=_("Task cancelled."),
            entry=_("cancel"),
            past=_("Cancelled"),
            help="end waiting tasks, ask running tasks to stop",
            details="""A running task is asked to stop: 202, which needs the permission to stop.

            200 and `worker_lost` if the worker was lost: then the attempt has ended, as with stop.
            """,
            is_grave=True,
        ),
        TaskVerb(
            name="stop",
            permissions=(STOP,),
            statuses=frozenset({TaskStatus.RUNNING}),
            each=request_stop_each,
            is_urgent=True,
            ends_attempt=True,
            label=_("Stop"),
            title=_("Stop tasks"),
            effect=_(
                "Is asked to stop, then interrupted after a grace period, and its process is "
                "killed after another. Both periods are settings."
            ),
            allowed=_("Only running tasks can be stopped; cancel tasks that wait."),
            done=_("Task asked to stop."),
            entry=_("stop"),
            past=_("Asked to stop"),
            help="ask running tasks to stop",
            details="""Answers 202; after a grace period the body is interrupted, after another
            its process is killed.

            200 if nobody was running the task at that moment: then it has ended. So it has if its
            worker was lost: `worker_lost` is true then. If the worker's host is only cut off from
            the database, the body may still run there until the worker reaches the database again.
            To know beforehand, look at `worker_lost` of the task, and send its ETag as If-Match.
            """,
            is_grave=True,
        ),
        TaskVerb(
            name="duplicate",
            permissions=(OPERATE, ENQUEUE),
            statuses=frozenset(TaskStatus),
            each=duplicate_each,
            not_in_workflow=frozenset(TaskStatus),
            in_workflow=COPIED,
            label=_("Duplicate"),
            title=_("Duplicate tasks"),
            effect=_("Another task with the same arguments and options is enqueued."),
            allowed=_("Any task can be duplicated."),
            done=_("Task duplicated."),
            entry=_("duplicate"),
            past=_("Duplicated"),
            help="enqueue further tasks with the arguments and options of these",
            details="""The options that the body gives replace the old ones. As every enqueue this
            needs a type marked `api=True`.
            """,
        ),
        TaskVerb(
            name="delete",
            permissions=(PURGE,),
            statuses=FINISHED,
            each=delete_each,
            not_in_workflow=FINISHED,
            in_workflow=refusal(gettext_noop("belongs to a workflow, which is deleted whole.")),
            label=_("Delete"),
            title=_("Delete tasks"),
            effect=_(
                "Is deleted with its attempts and log lines; only the audit entry remains. This "
                "cannot be undone."
            ),
            allowed=_("Only finished tasks can be deleted. Cancel or stop the task first."),
            done=_("Task deleted."),
            entry=_("delete"),
            past=_("Deleted"),
            help="delete finished tasks, with their attempts and log lines",
            is_grave=True,
        ),
    )
}
# The verbs for many tasks at once.
BULK_VERBS = {verb.name: verb for verb in TASK_VERBS.values() if verb.for_many}


def bulk_verb(name: str) -> TaskVerb:
    """Return the verb for many tasks. Raises ValueError for an unknown name."""
    if name in BULK_VERBS:
        return BULK_VERBS[name]
    hint = did_you_mean(name, BULK_VERBS, otherwise=f"Choose from {sorted(BULK_VERBS)}.")
    text = gettext_noop("{name!r} is not a bulk action.{hint}")
    raise ValueError(refusal(text, name=name, hint=hint))
