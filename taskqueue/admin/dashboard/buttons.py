"""Buttons of the dashboard: each posts one verb to the page of what it is done to.

They belong to one form that stands beside the part that is refreshed, for the form's token
differs each time. Where scripts run, dashboard.js asks for a reason first.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from taskqueue.admin.links import Links
from taskqueue.monitoring.read_models.queue import ShownQueue
from taskqueue.monitoring.read_models.running_task import RunningTask
from taskqueue.monitoring.read_models.worker import ACTIVE, QUIET, ShownWorker


@dataclass(frozen=True, kw_only=True)
class Button:
    """One verb."""

    title: str
    verb: str
    url: str
    question: str
    """What is asked before."""
    note: str = ""
    """What it comes to."""
    label: str
    """What it is called apart from the row that it stands in."""
    is_grave: bool = False
    is_for_a_time: bool = False
    """Whether it may be for so many minutes."""


def queue_buttons(queue: ShownQueue, links: Links) -> list[Button]:
    """Pause, or resume."""
    named = {"queue": queue.name}
    if queue.is_paused:
        label = _("Resume the queue %(queue)s") % named
        return [
            Button(
                title=_("Resume"),
                verb="resume",
                url=links.queue_act_url(queue.name),
                question=_("Resume the queue “%(queue)s”?") % named,
                label=label,
            )
        ]
    return [
        Button(
            title=_("Pause"),
            verb="pause",
            url=links.queue_act_url(queue.name),
            question=_("Pause the queue “%(queue)s”?") % named,
            note=_("Nothing of it is begun until it is resumed; what runs goes on."),
            label=_("Pause the queue %(queue)s") % named,
            is_for_a_time=True,
        )
    ]


def worker_buttons(worker: ShownWorker, links: Links) -> list[Button]:
    """What can still be asked of it."""
    if not worker.is_alive:
        return []
    named = {"worker": worker.name}
    url = links.url("worker_act", worker.id)
    quiet = Button(
        title=_("Quiet"),
        verb="quiet",
        url=url,
        question=_("Quiet the worker “%(worker)s”?") % named,
        note=_("It claims nothing more, finishes what runs, and stays until it is resumed."),
        label=_("Quiet the worker %(worker)s") % named,
    )
    resume = Button(
        title=_("Resume"),
        verb="resume",
        url=url,
        question=_("Resume the worker “%(worker)s”?") % named,
        note=_("It claims tasks again."),
        label=_("Resume the worker %(worker)s") % named,
    )
    stop = Button(
        title=_("Stop"),
        verb="stop",
        url=url,
        question=_("Stop the worker “%(worker)s”?") % named,
        note=_("It finishes what runs within its time for that, returns the rest, and ends."),
        label=_("Stop the worker %(worker)s") % named,
    )
    kill = Button(
        title=_("Kill"),
        verb="kill",
        url=url,
        question=_("Kill the worker “%(worker)s”?") % named,
        note=_("It ends at once; what runs is returned and begins anew elsewhere."),
        label=_("Kill the worker %(worker)s") % named,
        is_grave=True,
    )
    return {ACTIVE: [quiet, stop, kill], QUIET: [resume, stop, kill]}.get(worker.state, [kill])


def stop_button(running: RunningTask, links: Links) -> Button:
    """Ask it to stop."""
    named = {"task": running.name}
    return Button(
        title=_("Stop"),
        verb="stop",
        url=links.url_if_any("task_act", running.task_id),
        question=_("Stop the task “%(task)s”?") % named,
        note=_("It is asked to stop, then made to, and ends cancelled."),
        label=_("Stop the task %(task)s") % named,
        is_grave=True,
    )
