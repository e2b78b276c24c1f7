"""The tables of verbs on queues, definitions, limits, and everything at once."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.utils.translation import gettext_lazy as _

from taskqueue.access.permissions import CONTROL_QUEUES
from taskqueue.engine.control.limits import limit_queue, override_limit, reset_limit
from taskqueue.engine.control.pauses import (
    pause_all,
    pause_definition,
    resume_all,
    resume_definition,
)
from taskqueue.engine.control.queues import delete_queue, pause, resume
from taskqueue.engine.control.verb import Verb, verb_table

queue_verb = partial(Verb, noun="queue", permissions=(CONTROL_QUEUES,))
limit_verb = partial(Verb, noun="limit", permissions=(CONTROL_QUEUES,))
definition_verb = partial(Verb, noun="definition", permissions=(CONTROL_QUEUES,))

QUEUE_VERBS = verb_table(
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
        effect=_("It applies to all waiting tasks. Running tasks count towards it at once."),
        done=_("Limit of queue %(name)s set."),
        help="limit how many tasks of a queue run at once, and how many start in a period",
        details="Without numbers the limit is lifted.",
    ),
    queue_verb(
        name="delete",
        function=delete_queue,
        label=_("Delete"),
        entry=_("delete queue"),
        effect=_("Its pause and its limit go with it; tasks that have finished stay."),
        done=_("Queue %(name)s deleted."),
        help="delete an empty queue, with its pause and its limit",
        details="409 while it has tasks that have not finished, or a worker serves it by name.",
        is_grave=True,
    ),
)
LIMIT_VERBS = verb_table(
    limit_verb(
        name="set",
        function=override_limit,
        label=_("Set"),
        entry=_("set limit"),
        effect=_("It replaces the numbers that the code declares. Running tasks are not stopped."),
        done=_("Limit %(name)s set."),
        help="override the numbers that the code declares",
        details="With a concurrency of 0, all its tasks wait.",
    ),
    limit_verb(
        name="reset",
        function=reset_limit,
        label=_("Reset"),
        entry=_("reset limit"),
        done=_("Limit %(name)s is as the code declares it."),
        help="restore the numbers that the code declares",
    ),
)


def _pause_all(key: str, **arguments: Any) -> None:
    pause_all(**arguments)


def _resume_all(key: str, **arguments: Any) -> None:
    resume_all(**arguments)


ALL_VERBS = verb_table(
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
DEFINITION_VERBS = verb_table(
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
