"""The tables of verbs on queues, workers, schedules and operations, and all verbs together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.utils.translation import gettext_lazy as _

from taskqueue.access.permissions import (
    CONTROL_QUEUES,
    EDIT_SCHEDULES,
    ENQUEUE,
    OPERATE,
    STOP,
)
from taskqueue.engine.alerts.alert_verbs import ALERT_RULE_VERBS, ALERT_VERBS
from taskqueue.engine.batches.by_hand import fire_group
from taskqueue.engine.batches.firing import Fired
from taskqueue.engine.control.limits import (
    limit_queue,
    override_limit,
    release_sequence,
    reset_limit,
)
from taskqueue.engine.control.locking import Seen
from taskqueue.engine.control.pauses import (
    pause_all,
    pause_definition,
    resume_all,
    resume_definition,
)
from taskqueue.engine.control.queues import pause, resume
from taskqueue.engine.control.task_verbs import BULK_VERBS, TASK_VERBS
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.control.worker_changes import change_worker
from taskqueue.engine.control.workers import kill_worker, quiet_worker, resume_worker, stop_worker
from taskqueue.engine.operations.asking import cancel_operation
from taskqueue.engine.schedules.verbs import (
    create_schedule,
    delete_schedule,
    edit_schedule,
    pause_schedule,
    resume_schedule,
    run_schedule,
)
from taskqueue.engine.webhooks.verbs import WEBHOOK_VERBS
from taskqueue.engine.workflows.workflow_verbs import WORKFLOW_VERBS

queue_verb = partial(Verb, noun="queue", permissions=(CONTROL_QUEUES,))
limit_verb = partial(Verb, noun="limit", permissions=(CONTROL_QUEUES,))
definition_verb = partial(Verb, noun="definition", permissions=(CONTROL_QUEUES,))
worker_verb = partial(Verb, noun="worker", permissions=(STOP,))
schedule_verb = partial(Verb, noun="schedule", permissions=(EDIT_SCHEDULES,))
# A schedule makes tasks, so these verbs need the permission to enqueue too.
task_making_verb = partial(Verb, noun="schedule", permissions=(EDIT_SCHEDULES, ENQUEUE))
# The permissions are those of the verb that the operation does.
operation_verb = partial(Verb, noun="operation", permissions=())


def _table(*verbs: Verb) -> dict[str, Verb]:
    return {verb.name: verb for verb in verbs}


QUEUE_VERBS = _table(
    queue_verb(
        name="pause",
        function=pause,
        label=_("Pause"),
        entry=_("pause queue"),
        effect=_("No task of it is started until it is resumed; running tasks continue."),
        done=_("Queue %(name)s paused; running tasks continue."),
        help="let no worker claim the tasks of a queue; running tasks continue",
        details="A second pause replaces time and reason.",
    ),
    queue_verb(
        name="resume",
        function=resume,
        label=_("Resume"),
        entry=_("resume queue"),
        done=_("Queue %(name)s resumed."),
        help="end the pause of a queue",
    ),
    queue_verb(
        name="limit",
        function=limit_queue,
        label=_("Limit"),
        entry=_("limit queue"),
        effect=_("It holds for all tasks that wait; what runs takes its places at once."),
        done=_("Limit of queue %(name)s set."),
        help="limit how many tasks of a queue run at once, and how many start in a time",
        details="Without numbers the limit is lifted.",
    ),
)
LIMIT_VERBS = _table(
    limit_verb(
        name="set",
        function=override_limit,
        label=_("Set"),
        entry=_("set limit"),
        effect=_("It holds in place of what the code declares; nothing that runs is stopped."),
        done=_("Limit %(name)s set."),
        help="have other numbers hold than those that the code declares",
        details="A concurrency of 0 holds all its tasks.",
    ),
    limit_verb(
        name="reset",
        function=reset_limit,
        label=_("Reset"),
        entry=_("reset limit"),
        done=_("Limit %(name)s is as the code declares it."),
        help="have the numbers hold again that the code declares",
    ),
)


def _pause_all(key: str, **arguments: Any) -> None:
    pause_all(**arguments)


def _resume_all(key: str, **arguments: Any) -> None:
    resume_all(**arguments)


ALL_VERBS = _table(
    queue_verb(
        name="pause_all",
        function=_pause_all,
        label=_("Pause everything"),
        entry=_("pause everything"),
        effect=_("No worker starts any task until this is resumed; running tasks continue."),
        done=_("Everything is paused; running tasks continue."),
        help="let no worker claim anything; running tasks continue",
        details="A second pause replaces time and reason.",
    ),
    queue_verb(
        name="resume_all",
        function=_resume_all,
        label=_("Resume everything"),
        entry=_("resume everything"),
        done=_("Everything is resumed, but for queues and definitions that are paused."),
        help="end the pause of everything; paused queues and definitions stay paused",
        details="409 if not everything is paused.",
    ),
)
DEFINITION_VERBS = _table(
    definition_verb(
        name="pause",
        function=pause_definition,
        label=_("Pause"),
        entry=_("pause definition"),
        effect=_("None of its tasks is started until it is resumed; running tasks continue."),
        done=_("Definition %(name)s paused; running tasks continue."),
        help="let no worker claim the tasks of a definition; running tasks continue",
        details="A second pause replaces time and reason. Schedules go on making tasks.",
    ),
    definition_verb(
        name="resume",
        function=resume_definition,
        label=_("Resume"),
        entry=_("resume definition"),
        done=_("Definition %(name)s resumed."),
        help="end the pause of a definition",
        details="409 if the definition is not paused.",
    ),
)
WORKER_VERBS = _table(
    worker_verb(
        name="quiet",
        function=quiet_worker,
        label=_("Quiet"),
        entry=_("quiet worker"),
        effect=_("It claims no more tasks, finishes running tasks, and stays until it is resumed."),
        done=_("Worker %(name)s is asked to claim no more tasks and to stay."),
        help="claim no more tasks, finish running tasks, and stay",
    ),
    worker_verb(
        name="resume",
        function=resume_worker,
        label=_("Resume"),
        entry=_("resume worker"),
        effect=_("It claims tasks again."),
        done=_("Worker %(name)s is asked to claim tasks again."),
        help="let a quiet worker claim tasks again",
        details="409 if the worker is not quiet, or is asked to stop.",
    ),
    worker_verb(
        name="change",
        function=change_worker,
        label=_("Change"),
        entry=_("change worker"),
        effect=_("Its slots and queues change until it restarts; running bodies are not ended."),
        done=_("Worker %(name)s is asked to change its slots or queues."),
        help="change the slots and queues of a running worker, until it restarts",
        details=(
            "It takes them up with its next ping; `wanted_seen_at` tells when. With fewer slots, "
            "running bodies finish first."
        ),
    ),
    worker_verb(
        name="stop",
        function=stop_worker,
        label=_("Stop"),
        entry=_("stop worker"),
        effect=_(
            "It finishes running tasks within the shutdown timeout, returns the rest, and ends."
        ),
        done=_("Worker %(name)s is asked to finish running tasks and to end."),
        help="end as at SIGTERM: finish within the shutdown timeout, return the rest",
    ),
    worker_verb(
        name="kill",
        function=kill_worker,
        label=_("Kill"),
        entry=_("kill worker"),
        effect=_("It ends at once; running tasks are returned and start again elsewhere."),
        done=_("Worker %(name)s is asked to end at once and to return running tasks."),
        help="end at once, and return running tasks",
        is_grave=True,
    ),
)
# `disable` is the edit `enabled=False`; only the code removes a schedule that it declares.
SCHEDULE_VERBS = _table(
    task_making_verb(
        name="create",
        function=create_schedule,
        label=_("Create"),
        entry=_("create schedule"),
    ),
    task_making_verb(
        name="edit",
        function=edit_schedule,
        label=_("Edit"),
        entry=_("edit schedule"),
    ),
    schedule_verb(
        name="pause",
        function=pause_schedule,
        label=_("Pause"),
        entry=_("pause schedule"),
        done=_("Schedule %(name)s paused; running tasks continue."),
        help="let nothing more of a schedule run; running tasks continue",
        details="A second pause replaces who and why.",
    ),
    task_making_verb(
        name="resume",
        function=resume_schedule,
        label=_("Resume"),
        entry=_("resume schedule"),
        done=_("Schedule %(name)s resumed."),
        help="end the pause of a schedule; runs of that time are not made up for",
    ),
    task_making_verb(
        name="run_now",
        function=run_schedule,
        label=_("Run now"),
        entry=_("run schedule"),
        done=_("Run of schedule %(name)s requested."),
        help="run a schedule now, in addition to its rule, also while it is paused",
        details="409 if its overlap policy would skip the run.",
    ),
    schedule_verb(
        name="delete",
        function=delete_schedule,
        label=_("Delete"),
        entry=_("delete schedule"),
        done=_("Schedule %(name)s deleted."),
        help="delete a schedule with its history; its tasks stay",
        is_grave=True,
    ),
    schedule_verb(name="disable", label=_("Disable"), entry=_("edit schedule")),
    schedule_verb(name="remove", permissions=(), label=_("Remove"), entry=_("remove schedule")),
)
OPERATION_VERBS = _table(
    operation_verb(name="start", label=_("Start"), entry=_("start operation")),
    operation_verb(
        name="cancel",
        function=cancel_operation,
        label=_("Cancel"),
        entry=_("cancel operation"),
        done=_("Operation cancelled; completed changes are kept."),
        help="cancel an operation; completed changes are kept",
        details="Needs the permission of the operation's verb.",
    ),
)


def _fire(name: str, *, group: str, by: object, reason: str, seen: Seen = None) -> list[Fired]:
    """Enqueue what a group has collected. Nothing of it is compared: events come at any moment."""
    return fire_group(name, group, by=by, reason=reason)


GROUP_VERBS = _table(
    Verb(
        noun="group",
        name="fire",
        function=_fire,
        permissions=(OPERATE,),
        label=_("Fire"),
        entry=_("fire group"),
        done=_("The events of a group of %(name)s are enqueued."),
        help="enqueue what a group has collected, whether it is due or not",
    ),
)
MAKING_WORKFLOWS = _table(
    Verb(
        noun="workflow",
        name="enqueue",
        permissions=(ENQUEUE,),
        label=_("Enqueue"),
        entry=_("enqueue workflow"),
    ),
)
OTHER_VERBS = _table(
    Verb(
        noun="task",
        name="release",
        function=release_sequence,
        permissions=(OPERATE,),
        label=_("Release sequence"),
        entry=_("release sequence"),
        done=_("The sequence of task %(name)s goes on."),
        help="let a halted sequence go on behind its task that failed",
    ),
    Verb(
        noun="task",
        name="enqueue",
        permissions=(ENQUEUE,),
        label=_("Enqueue"),
        entry=_("enqueue"),
    ),
    Verb(noun="", name="prune", permissions=(), label=_("Prune"), entry=_("prune")),
)
TABLES: tuple[Mapping[str, Verb], ...] = (
    TASK_VERBS, QUEUE_VERBS, LIMIT_VERBS, ALL_VERBS, DEFINITION_VERBS, WORKER_VERBS,
    SCHEDULE_VERBS, OPERATION_VERBS, WORKFLOW_VERBS, GROUP_VERBS, ALERT_VERBS, ALERT_RULE_VERBS,
    MAKING_WORKFLOWS, WEBHOOK_VERBS, OTHER_VERBS,
)  # fmt: skip
# The verbs that operations do, by their names.
KNOWN_VERBS: Mapping[str, Verb] = {**BULK_VERBS, "replay": WEBHOOK_VERBS["replay"]}
# All verbs, by noun and name, as audit entries store them.
VERBS = {(verb.noun, verb.name): verb for table in TABLES for verb in table.values()}
