"""The table of verbs on workers."""

from __future__ import annotations

from functools import partial

from django.utils.translation import gettext_lazy as _

from taskqueue.access.permissions import STOP
from taskqueue.engine.control.verb import Verb, verb_table
from taskqueue.engine.control.worker_changes import change_worker
from taskqueue.engine.control.workers import kill_worker, quiet_worker, resume_worker, stop_worker

worker_verb = partial(Verb, noun="worker", permissions=(STOP,))

WORKER_VERBS = verb_table(
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
