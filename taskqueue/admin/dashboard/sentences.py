"""Notices in words: what is wrong, and what helps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue.admin.display import link_to_list, link_to_row
from taskqueue.admin.queues.addresses import queue_url
from taskqueue.models import Task, Worker
from taskqueue.monitoring.counts import Count
from taskqueue.monitoring.notices import ERROR, Notice

OF_WORKERS = ("lost_worker", "worker_trouble")
LONGEST_DETAIL = 300


def sentences(request: HttpRequest, notices: Sequence[Notice]) -> list[dict[str, Any]]:
    """Those that who looks may see; names of workers are for those who may view workers."""
    may_view_workers = request.user.has_perm("taskqueue.view_worker")
    return [
        {"level": notice.level, "badge": _badge(notice), "text": sentence(notice)}
        for notice in notices
        if may_view_workers or notice.code not in OF_WORKERS
    ]


def _badge(notice: Notice) -> SafeString:
    look, word = ("error", _("error")) if notice.level == ERROR else ("warning", _("warning"))
    return format_html('<span class="taskqueue-badge taskqueue-badge--{}">{}</span>', look, word)


def sentence(notice: Notice) -> SafeString:
    """What the notice says; one of a code that is not known here is told as it is."""
    words = _words(notice.code, notice.count or 0)
    if not words:
        return format_html("{} {}", notice.code.replace("_", " "), notice.subject)
    return format_html(
        words,
        count=str(Count(notice.count or 0, notice.is_capped)),
        subject=_subject(notice),
        detail=Truncator(notice.detail).chars(LONGEST_DETAIL),
        command=format_html("<code>{}</code>", "manage.py runworker"),
    )


def _words(code: str, count: int) -> str:
    """The sentence, with gaps."""
    if code == "no_worker" and not count:
        return _("No worker lives: what is enqueued waits until one is started with {command}.")
    words = {
        "no_worker": ngettext(
            "{count} task waits, and no worker lives. Start one with {command}.",
            "{count} tasks wait, and no worker lives. Start one with {command}.",
            count,
        ),
        "unserved_queue": ngettext(
            "{count} task waits, and no live worker serves the queue {subject}.",
            "{count} tasks wait, and no live worker serves the queue {subject}.",
            count,
        ),
        "paused_with_waiting": ngettext(
            "{count} task waits while the queue {subject} is paused.",
            "{count} tasks wait while the queue {subject} is paused.",
            count,
        ),
        "stalled": ngettext(
            "{count} task waits on the queue {subject} for more than a minute, although a worker "
            "that serves it has a free slot.",
            "{count} tasks wait on the queue {subject}, the oldest for more than a minute, "
            "although a worker that serves it has a free slot.",
            count,
        ),
        "lost_worker": _(
            "The worker {subject} was lost: it gave no sign of life within its lease."
        ),
        "worker_trouble": _("The worker {subject} is in trouble: {detail}"),
        "wedged": _(
            "The task {subject} seems wedged: it runs for far longer than others of its name, "
            "with no sign of progress."
        ),
    }
    return words.get(code, "")


def _subject(notice: Notice) -> SafeString:
    if notice.code in OF_WORKERS:
        return link_to_list(Worker, notice.subject, q=notice.subject)
    if notice.code == "wedged":
        return link_to_row(Task, UUID(notice.subject), notice.subject)
    return format_html('<a href="{}">{}</a>', queue_url(notice.subject), notice.subject)
