"""Notices in words: what is wrong, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue.access.permissions import EDIT_SCHEDULES
from taskqueue.admin.links import Links
from taskqueue.display import number
from taskqueue.models import Schedule, Task, Worker
from taskqueue.monitoring.counts import Count
from taskqueue.monitoring.notices import Notice
from taskqueue.monitoring.searching.search_tokens import search_text

OF_WORKERS = frozenset({"lost_worker", "worker_trouble"})
OF_SCHEDULES = frozenset({"schedule_trouble", "schedule_paused_itself"})
# Any one of these permissions is enough.
NEEDS = {
    OF_WORKERS: ("taskqueue.view_worker",),
    OF_SCHEDULES: ("taskqueue.view_schedule", EDIT_SCHEDULES),
}
LONGEST_DETAIL = 300


def visible(request: HttpRequest, notices: Sequence[Notice]) -> list[Notice]:
    """Return the notices that the user may view."""
    hidden: set[str] = set()
    for codes, permissions in NEEDS.items():
        if not any(map(request.user.has_perm, permissions)):
            hidden |= codes
    return [notice for notice in notices if notice.code not in hidden]


def sentence(notice: Notice, links: Links) -> SafeString:
    """Return the sentence of the notice."""
    return format_html(
        _template(notice.code, notice.count or 0),
        count=str(Count(notice.count or 0, notice.is_capped)),
        subject=_subject(notice, links),
        total=number(notice.total or 0),
        example=notice.example and links.to_row(Task, UUID(notice.example), notice.example),
        detail=Truncator(notice.detail).chars(LONGEST_DETAIL),
        command=format_html("<code>{}</code>", "manage.py runworker"),
    )


def _template(code: str, count: int) -> str:
    """Return the sentence with its gaps."""
    if code == "no_worker" and not count:
        return _("No workers are running. Queued tasks wait until you start one with {command}.")
    words = {
        "no_worker": ngettext(
            "{count} task is waiting, and no workers are running. Start one with {command}.",
            "{count} tasks are waiting, and no workers are running. Start one with {command}.",
            count,
        ),
        "unserved_queue": ngettext(
            "{count} task is waiting, and no running worker serves the queue {subject}.",
            "{count} tasks are waiting, and no running worker serves the queue {subject}.",
            count,
        ),
        "paused_with_waiting": ngettext(
            "{count} task is waiting while the queue {subject} is paused.",
            "{count} tasks are waiting while the queue {subject} is paused.",
            count,
        ),
        "stalled": ngettext(
            "{count} task has waited on the queue {subject} for more than a minute, although a "
            "worker that serves it has a free slot.",
            "{count} tasks are waiting on the queue {subject}, the oldest for more than a minute, "
            "although a worker that serves it has a free slot.",
            count,
        ),
        "failing": _(
            "{count} of {total} attempts on the queue {subject} failed within the last 15 minutes."
        ),
        "absent_workers": ngettext(
            "{count} task on the queue {subject} waits for workers that are not running: "
            "{example} waits for {detail}.",
            "{count} tasks on the queue {subject} wait for workers that are not running. The "
            "oldest is {example}, which waits for {detail}.",
            count,
        ),
        "too_few_workers": ngettext(
            "{count} task on the queue {subject} waits for more workers than are running: "
            "{example}.",
            "{count} tasks on the queue {subject} wait for more workers than are running. The "
            "oldest is {example}.",
            count,
        ),
        "parked": ngettext(
            "{count} task named {subject} is parked: the workers that claimed it do not know this "
            "name. Start workers that run the current code.",
            "{count} tasks named {subject} are parked: the workers that claimed them do not know "
            "this name. Start workers that run the current code.",
            count,
        ),
        "lost_worker": _("The worker {subject} is lost: it sent no heartbeat within its lease."),
        "worker_trouble": _("The worker {subject} reports a problem: {detail}"),
        "schedule_trouble": _("The schedule {subject} cannot run: {detail}"),
        "schedule_paused_itself": ngettext(
            "The schedule {subject} paused itself after {count} failed run. Resume it when the "
            "cause is fixed.",
            "The schedule {subject} paused itself after {count} failed runs in a row. Resume it "
            "when the cause is fixed.",
            count,
        ),
        "lost_holds": ngettext(
            "{count} task is held by a lost worker whose lease has not expired: {subject}. Stop or "
            "retry it to end the lease now.",
            "{count} tasks are held by lost workers whose leases have not expired, such as "
            "{subject}. Stop or retry them to end the leases now.",
            count,
        ),
        "wedged": _(
            "The task {subject} seems wedged: it has been running far longer than similar tasks, "
            "with no sign of progress."
        ),
    }
    return words[code]


def _subject(notice: Notice, links: Links) -> SafeString:
    if notice.code in OF_WORKERS:
        return links.to_list(Worker, notice.subject, q=notice.subject)
    if notice.code in OF_SCHEDULES:
        return links.to_list(Schedule, notice.subject, q=notice.subject)
    if notice.code == "parked":
        return links.to_list(Task, notice.subject, q=search_text(name=notice.subject))
    if notice.code in ("wedged", "lost_holds"):
        return links.to_row(Task, UUID(notice.subject), notice.subject)
    return format_html('<a href="{}">{}</a>', links.queue_url(notice.subject), notice.subject)
