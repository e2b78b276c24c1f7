"""All verbs, and the tables of verbs on operations, groups and other nouns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from django.utils.translation import gettext_lazy as _

from taskqueue.access.permissions import ENQUEUE, OPERATE
from taskqueue.engine.alerts.alert_verbs import ALERT_RULE_VERBS, ALERT_VERBS
from taskqueue.engine.batches.by_hand import fire_group
from taskqueue.engine.batches.firing import Fired
from taskqueue.engine.control.limits import release_sequence
from taskqueue.engine.control.locking import Seen
from taskqueue.engine.control.queue_verbs import (
    ALL_VERBS,
    DEFINITION_VERBS,
    LIMIT_VERBS,
    QUEUE_VERBS,
)
from taskqueue.engine.control.searches import SEARCH_VERBS
from taskqueue.engine.control.task_verbs import BULK_VERBS, TASK_VERBS
from taskqueue.engine.control.verb import Verb, verb_table
from taskqueue.engine.control.worker_verbs import WORKER_VERBS
from taskqueue.engine.operations.asking import cancel_operation
from taskqueue.engine.schedules.schedule_verbs import SCHEDULE_VERBS
from taskqueue.engine.webhooks.verbs import WEBHOOK_VERBS
from taskqueue.engine.workflows.workflow_verbs import WORKFLOW_VERBS

# The permissions are those of the operation's verb.
operation_verb = partial(Verb, noun="operation", permissions=())

OPERATION_VERBS = verb_table(
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
    """Enqueue what a group has collected.

    `seen` is not compared, because events come at any moment.
    """
    return fire_group(name, group, by=by, reason=reason)


GROUP_VERBS = verb_table(
    Verb(
        noun="group",
        name="fire",
        function=_fire,
        permissions=(OPERATE,),
        label=_("Fire"),
        entry=_("fire group"),
        done=_("The events of a group of %(name)s are enqueued."),
        help="enqueue the events that a group has collected, due or not",
    ),
)
MAKING_WORKFLOWS = verb_table(
    Verb(
        noun="workflow",
        name="enqueue",
        permissions=(ENQUEUE,),
        label=_("Enqueue"),
        entry=_("enqueue workflow"),
    ),
)
OTHER_VERBS = verb_table(
    Verb(
        noun="task",
        name="release",
        function=release_sequence,
        permissions=(OPERATE,),
        label=_("Release sequence"),
        entry=_("release sequence"),
        done=_("The sequence of task %(name)s goes on."),
        help="let a halted sequence continue after its failed task",
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
    MAKING_WORKFLOWS, WEBHOOK_VERBS, SEARCH_VERBS, OTHER_VERBS,
)  # fmt: skip
# The verbs of operations, by name.
KNOWN_VERBS: Mapping[str, Verb] = {**BULK_VERBS, "replay": WEBHOOK_VERBS["replay"]}
# All verbs by noun and name, as audit entries store them.
VERBS = {(verb.noun, verb.name): verb for table in TABLES for verb in table.values()}
