"""Buttons of the dashboard: each posts one verb to the page of what it is done to.

They belong to one form that stands beside the part that is refreshed, for the form's token
differs each time. Where scripts run, dashboard.js asks for a reason first.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from taskqueue.admin.links import Links
from taskqueue.admin.workers.rows import verbs_for
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.verbs import QUEUE_VERBS, WORKER_VERBS
from taskqueue.monitoring.read_models.queue import ShownQueue
from taskqueue.monitoring.read_models.running_task import RunningTask
from taskqueue.monitoring.read_models.worker import ShownWorker


@dataclass(frozen=True, kw_only=True)
class Button:
    """One verb."""

    title: str
    verb: str
    url: str
    question: str
    """The question of the confirmation."""
    note: str = ""
    """What it comes to."""
    label: str
    """What it is called apart from the row that it stands in."""
    is_grave: bool = False
    is_for_a_time: bool = False
    """Whether it may be for so many minutes."""


def queue_buttons(queue: ShownQueue, links: Links) -> list[Button]:
    """Pause, or resume."""
    verb = QUEUE_VERBS["resume" if queue.is_paused else "pause"]
    return [_button(verb, queue.name, links.queue_act_url(queue.name))]


def worker_buttons(worker: ShownWorker, links: Links) -> list[Button]:
    """The verbs that it can still be asked for."""
    if not worker.is_alive:
        return []
    url = links.url("worker_act", worker.id)
    verbs = verbs_for(worker.state) or [WORKER_VERBS["kill"]]
    return [_button(verb, worker.name, url) for verb in verbs]


def stop_button(running: RunningTask, links: Links) -> Button:
    """Ask it to stop."""
    return _button(TASK_VERBS["stop"], running.name, links.url_if_any("task_act", running.task_id))


def _button(verb: Verb, name: str, url: str) -> Button:
    words = {"act": capfirst(str(verb.entry)), "name": name}
    return Button(
        title=str(verb.label),
        verb=verb.name,
        url=url,
        question=_("%(act)s “%(name)s”?") % words,
        note=str(verb.effect),
        label=_("%(act)s %(name)s") % words,
        is_grave=verb.is_grave,
        is_for_a_time=verb is QUEUE_VERBS["pause"],
    )
