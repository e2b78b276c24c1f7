"""A worker in lists and at the head of its page, with the requests that it can get."""

from __future__ import annotations

from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from taskqueue.admin.links import Links
from taskqueue.display import EMPTY, badge, rounded_age
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.verbs import WORKER_VERBS
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


OFFERED = {
    ACTIVE: ("quiet", "stop", "kill"),
    QUIET: ("resume", "stop", "kill"),
    DRAINING: ("kill",),
}
"""The verbs for a worker, by its state."""


def verbs_for(state: str) -> list[Verb]:
    """Return the verbs that a worker of that state can still be asked for."""
    return [WORKER_VERBS[name] for name in OFFERED.get(state, ())]
