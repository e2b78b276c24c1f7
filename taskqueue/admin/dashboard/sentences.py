"""The notices as sentences for people, with links to their subjects."""

from __future__ import annotations

from uuid import UUID

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue.admin.links import Links
from taskqueue.display import last_digits, number
from taskqueue.models import AlertRule, Schedule, Task, Worker
from taskqueue.monitoring.alerts.sentences import translated
from taskqueue.monitoring.counts import Count
from taskqueue.monitoring.durations import short_duration
from taskqueue.monitoring.notices import Notice
from taskqueue.monitoring.searching.search_tokens import search_text
from taskqueue.reason_words import reason_words

OF_WORKERS = frozenset({"lost_worker", "worker_trouble"})
OF_SCHEDULES = frozenset({"schedule_trouble", "schedule_paused_itself", "schedule_overdue"})
OF_NAMES = frozenset({"parked", "definition_paused", "failure_jump", "new_error"})
OF_TASKS = frozenset({"wedged", "lost_holds", "long_run", "halted"})
LONGEST_DETAIL = 300


def sentence(notice: Notice, links: Links) -> SafeString:
    """Return the sentence of the notice."""
    return format_html(
        _template(notice),
        count=str(Count(notice.count or 0, notice.is_capped)),
        subject=_subject(notice, links),
        total=number(notice.total or 0),
        example=notice.example and _task_link(notice.example, links),
        host=notice.host,
        detail=Truncator(_detail(notice)).chars(LONGEST_DETAIL),
        age=short_duration(notice.seconds or 0.0),
        usual=short_duration(notice.usual_seconds),
        command=format_html("<code>{}</code>", "manage.py runworker"),
    )


def _task_link(key: str, links: Links) -> SafeString:
    return links.to_row(Task, UUID(key), last_digits(key))


def _detail(notice: Notice) -> str:
    """Return the detail, translated if this package wrote it."""
    return reason_words(translated(notice.found, notice.detail))


def _template(notice: Notice) -> str:
    """Return the sentence with its gaps."""
    code, count = notice.code, notice.count or 0
    if code == "no_worker" and not count:
        return _("No workers are running. Queued tasks wait until you start one with {command}.")
    if code == "long_run" and notice.usual_seconds is None:
        return _("The task {subject} ({detail}) has run for {age}. Its usual time is not known.")
    if code == "new_error" and not notice.detail:
        return ngettext(
            "A new kind of error: {count} task named {subject} failed without an error class: "
            "{example}.",
            "A new kind of error: {count} tasks named {subject} failed without an error class. The "
            "first is {example}.",
            count,
        )
    if code == "halted" and not notice.total:
        return ngettext(
            "{count} sequence is halted because the task {subject} failed. No task waits behind "
            "it.",
            "{count} sequences are halted because a task of each failed, such as {subject}. No "
            "task waits behind them.",
            count,
        )
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
        "all_paused": _("Everything is paused{detail}: no worker claims any task."),
        "definition_paused": _("The definition {subject} is paused{detail}."),
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
        "late_queue": ngettext(
            "{count} task is waiting on the queue {subject}, for {age} by now: its workers are "
            "busy.",
            "{count} tasks are waiting on the queue {subject}, the oldest for {age}: its workers "
            "are busy.",
            count,
        ),
        "deep_queue": _("{count} tasks are waiting on the queue {subject}."),
        "growing_backlog": _(
            "The backlog of the queue {subject} grows: {total} of its {count} waiting tasks came "
            "within the last 15 minutes, in which {detail} attempts ended."
        ),
        "absent_tags": _(
            "Tasks on the queue {subject} require tags that no running worker of it has: {detail}."
        ),
        "failure_jump": _(
            "{count} of {total} attempts at {subject} failed within the last 15 minutes; at this "
            "hour of the past days, {detail} did."
        ),
        "new_error": ngettext(
            "A new kind of error: {count} task named {subject} failed with {detail}: {example}.",
            "A new kind of error: {count} tasks named {subject} failed with {detail}. The first is "
            "{example}.",
            count,
        ),
        "halted": ngettext(
            "{count} sequence is halted because the task {subject} failed. Tasks wait behind it.",
            "{count} sequences are halted because a task of each failed. Tasks wait in {total} of "
            "them, such as behind {subject}.",
            count,
        ),
        "doctor": _doctor(notice),
        "heartbeat_failing": _(
            "The heartbeat {subject} cannot call its URL, so that nobody outside hears that all is "
            "well: {detail}"
        ),
        "long_run": _(
            "The task {subject} ({detail}) has run for {age}; 95 of 100 such tasks take at most "
            "{usual}."
        ),
        "schedule_overdue": ngettext(
            "{count} schedule is overdue: {subject}, for {age}.",
            "{count} schedules are overdue. The first is {subject}, for {age}.",
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


def _doctor(notice: Notice) -> str:
    if notice.seconds is None:
        if notice.host:
            return _("The doctor found on {host}: {detail}")
        return _("The doctor found: {detail}")
    if notice.host:
        return _("The doctor found on {host} {age} ago: {detail}")
    return _("The doctor found {age} ago: {detail}")


def _subject(notice: Notice, links: Links) -> SafeString:
    if notice.code in OF_WORKERS:
        return links.to_list(Worker, notice.subject, q=notice.subject)
    if notice.code in OF_SCHEDULES:
        return links.to_list(Schedule, notice.subject, q=notice.subject)
    if notice.code == "heartbeat_failing":
        return links.to_list(AlertRule, notice.subject)
    if notice.code in OF_NAMES:
        return links.to_list(Task, notice.subject, q=search_text(name=notice.subject))
    if notice.code in OF_TASKS:
        return _task_link(notice.subject, links)
    return format_html('<a href="{}">{}</a>', links.queue_url(notice.subject), notice.subject)
