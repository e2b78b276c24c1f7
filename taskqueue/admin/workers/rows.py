"""A worker in lists and at the head of its page, with the requests that it can get."""

from __future__ import annotations

from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from taskqueue.admin.display import EMPTY, badge, rounded_age
from taskqueue.admin.links import Links
from taskqueue.models import Worker
from taskqueue.monitoring.read_models.worker import ACTIVE, DRAINING, QUIET, ShownWorker

LONGEST_TROUBLE = 200


def line_of(worker: ShownWorker, links: Links) -> dict[str, Any]:
    """A worker with its fields as the list and the head of its page write them."""
    return {
        "worker": worker,
        "url": links.row_url(Worker, worker.id),
        "act_url": links.url_if_any("worker_act", worker.id),
        "badge": badge(worker.state),
        "queues": ", ".join(worker.queues) or _("all"),
        "seen": rounded_age(worker.seen_seconds),
        "memory": EMPTY if worker.memory_bytes is None else filesizeformat(worker.memory_bytes),
        "trouble": Truncator(" ".join(worker.trouble.split())).chars(LONGEST_TROUBLE),
        "request": asked(worker.request) if worker.is_alive else "",
        "verbs": verbs_for(worker.state),
    }


def asked(request: str) -> str:
    """Return the pending request in words."""
    words = {
        "quiet": _("asked to be quiet"),
        "stop": _("asked to stop"),
        "kill": _("asked to end at once"),
    }
    return words.get(request, "")


def verbs_for(state: str) -> list[dict[str, Any]]:
    """Return the requests that a worker in that state can get."""
    quiet: dict[str, Any] = {
        "name": "quiet",
        "title": _("Quiet"),
        "hint": _("claims nothing more, and stays until it is resumed"),
    }
    resume: dict[str, Any] = {
        "name": "resume",
        "title": _("Resume"),
        "hint": _("claims tasks again"),
    }
    stop: dict[str, Any] = {
        "name": "stop",
        "title": _("Stop"),
        "hint": _("finishes what runs, and ends"),
    }
    kill: dict[str, Any] = {
        "name": "kill",
        "title": _("Kill…"),
        "hint": _("ends at once; what runs is returned"),
        "is_grave": True,
    }
    verbs: dict[str, list[dict[str, Any]]] = {
        ACTIVE: [quiet, stop, kill],
        QUIET: [resume, stop, kill],
        DRAINING: [kill],
    }
    return verbs.get(state, [])
