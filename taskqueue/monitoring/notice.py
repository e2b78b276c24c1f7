"""A condition that needs attention: its code, and a sentence and a remedy in English."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from shlex import quote
from typing import Any, Literal, NamedTuple

from django.utils.translation import gettext, gettext_noop, override

from taskqueue.conf import get_settings
from taskqueue.core.sentences import Sentence
from taskqueue.monitoring.durations import short_duration

WARNING, ERROR = "warning", "error"
Code = Literal[
    "no_worker", "unserved_queue", "paused_with_waiting", "stalled", "failing", "absent_workers",
    "too_few_workers", "parked", "schedule_trouble", "schedule_paused_itself", "lost_worker",
    "worker_trouble", "wedged", "lost_holds", "all_paused", "definition_paused", "late_queue",
    "deep_queue", "schedule_overdue", "growing_backlog", "absent_tags", "failure_jump", "new_error",
    "long_run", "doctor", "heartbeat_failing",
]  # fmt: skip


@dataclass(frozen=True)
class Notice:
    """A condition that was found; the admin's pages have translated sentences of their own."""

    code: Code
    # `warning` or `error`.
    level: str
    # The queue, worker, schedule, alert rule, task or name of tasks.
    subject: str = ""
    # The number of tasks concerned; of attempts for `failing`, of runs for a schedule.
    count: int | None = None
    # Whether there are more than `count`.
    is_capped: bool = False
    # Attempts that ended, for `failing` and `failure_jump`; workers that a task wants, for
    # `too_few_workers`; tasks that came lately, for `growing_backlog`.
    total: int | None = None
    # The id of the task that waits longest.
    example: str = ""
    # For how long that task waits, or the first schedule is overdue.
    seconds: float | None = None
    # The trouble of a worker, schedule or heartbeat; names of workers or tags; how many workers are
    # missing, or attempts ended; the usual failure rate; the class of an error; a name.
    detail: str = ""
    # The remedy of `doctor`.
    advice: str = ""
    # The run time p95 of the name, for `long_run`; None: too few runs are known.
    usual_seconds: float | None = None
    # Since when it holds, where that is known.
    since: datetime | None = field(default=None, compare=False)

    @property
    def sentence(self) -> str:
        """The condition in plain English; may contain text from users."""
        return TEXTS[self.code].sentence.format(**self._values())

    @property
    def words(self) -> dict[str, Any]:
        """The sentence as `Sentence.words` has it, for readers of other languages."""
        return Sentence(TEXTS[self.code].sentence, self._values()).words

    @property
    def remedy(self) -> str:
        """The remedy, with commands that can be pasted into a shell."""
        return self._filled(TEXTS[self.code].remedy)

    @property
    def translated_remedy(self) -> str:
        """The remedy in the language of the reader."""
        return self._filled(gettext(TEXTS[self.code].remedy))

    def _filled(self, remedy: str) -> str:
        return remedy.format(**self._values() | {"subject": quote(self.subject)})

    def _values(self) -> dict[str, str]:
        left = get_settings().PARK_LIMIT.total_seconds() - (self.seconds or 0.0)
        return {
            "subject": self.subject,
            "count": f"{self.count or 0:,}{'+' if self.is_capped else ''}",
            "total": f"{self.total or 0:,}",
            "example": self.example,
            "age": duration(self.seconds or 0.0),
            "fails": f"in {duration(left)}" if left > 0 else "at its next attempt",
            "detail": self.detail,
            "advice": self.advice,
            "error": self.detail or "no error class",
            "tags": quote(self.detail),
            "usual": (
                "fewer than 5 runs of it are known"
                if self.usual_seconds is None
                else f"95 % of its runs take at most {duration(self.usual_seconds)}"
            ),
        }


class Text(NamedTuple):
    """The sentence and the remedy of a code."""

    sentence: str
    remedy: str


TEXTS: dict[Code, Text] = {
    "no_worker": Text(
        "No workers are running. Waiting tasks: {count}.",
        gettext_noop("Start one: manage.py runworker."),
    ),
    "unserved_queue": Text(
        gettext_noop("No running worker serves the queue {subject}. Waiting tasks: {count}."),
        gettext_noop("Start a worker with --queues {subject}, or one without --queues."),
    ),
    "all_paused": Text(
        "Everything is paused{detail}: no worker claims any task.",
        gettext_noop("manage.py taskqueue resume --all, unless the pause is still needed."),
    ),
    "definition_paused": Text(
        "The definition {subject} is paused{detail}.",
        gettext_noop(
            "manage.py taskqueue resume --definition {subject}, unless the pause is still needed."
        ),
    ),
    "paused_with_waiting": Text(
        "The queue {subject} is paused. Waiting tasks: {count}.",
        gettext_noop("manage.py taskqueue resume {subject}, unless the pause is still needed."),
    ),
    "stalled": Text(
        gettext_noop(
            "No task of the queue {subject} starts, though a worker has free slots. Waiting tasks:"
            " {count}."
        ),
        gettext_noop("Run manage.py taskqueue why ID for one of them, and read the workers' logs."),
    ),
    "late_queue": Text(
        gettext_noop(
            "The oldest task of the queue {subject} has waited {age}, and its workers are busy."
            " Waiting tasks: {count}."
        ),
        gettext_noop(
            "Start more workers for the queue, or see what takes so long: manage.py taskqueue stats"
            " --queue {subject}."
        ),
    ),
    "deep_queue": Text(
        gettext_noop("Very many tasks wait in the queue {subject}: {count}."),
        gettext_noop(
            "Start more workers for the queue, or find what enqueues so many:"
            ' manage.py taskqueue list "queue:{subject} status:ready".'
        ),
    ),
    "growing_backlog": Text(
        "The backlog of the queue {subject} grows: {total} of the waiting tasks came within the"
        " last 15 minutes, in which {detail} attempts ended. Waiting tasks: {count}.",
        gettext_noop(
            "Start more workers for the queue, or find what enqueues so many:"
            " manage.py taskqueue stats --queue {subject}."
        ),
    ),
    "absent_tags": Text(
        "Tasks of the queue {subject} require the tags {detail}, which no running worker of the"
        " queue has.",
        "manage.py runworker --queues {subject} --tags {tags}",
    ),
    "failure_jump": Text(
        "Of {subject}, {count} of {total} attempts failed within the last 15 minutes; at this hour"
        " of the past days, {detail} did.",
        gettext_noop(
            "Find what has changed, such as a deploy:"
            ' manage.py taskqueue list "name:{subject} status:failed,retrying".'
        ),
    ),
    "new_error": Text(
        "A new kind of error: tasks named {subject} fail with {error}. Failed tasks: {count}. The"
        " first, {example}, failed {age} ago.",
        gettext_noop(
            "manage.py taskqueue show {example}; fix the cause, then "
            "manage.py taskqueue retry --query"
            ' "name:{subject} status:failed".'
        ),
    ),
    "doctor": Text("The doctor found: {detail}", "{advice}"),
    "heartbeat_failing": Text(
        "The heartbeat {subject} cannot call its URL, so that nobody outside hears that all is"
        " well: {detail}",
        gettext_noop(
            "Look whether its URL is right, and whether workers may reach it:"
            " manage.py taskqueue alerts test {subject}."
        ),
    ),
    "long_run": Text(
        "The task {subject} ({detail}) has run for {age}; {usual}.",
        gettext_noop(
            "manage.py taskqueue show {subject}; manage.py taskqueue stop {subject} ends it."
        ),
    ),
    "schedule_overdue": Text(
        "Schedules are overdue: {count}. The first is {subject}, for {age}.",
        gettext_noop(
            "Start a worker, or read the workers' logs: something keeps them from their duties."
        ),
    ),
    "failing": Text(
        "In the queue {subject}, {count} of {total} attempts failed within the last 15 minutes.",
        gettext_noop(
            'Fix the cause: manage.py taskqueue list "queue:{subject} status:failed,retrying".'
        ),
    ),
    "absent_workers": Text(
        "In the queue {subject}, tasks wait for named workers that are not running or claim"
        " nothing: {count}. The first is {example}, which has waited {age} for {detail}.",
        gettext_noop(
            "Start a worker with --name {detail}, or cancel the tasks. See"
            " manage.py taskqueue why {example}."
        ),
    ),
    "too_few_workers": Text(
        "In the queue {subject}, tasks wait for more workers than are running: {count}. The first"
        " is {example}, which has waited {age}: of {total} workers it still needs {detail}.",
        gettext_noop(
            "Start more workers for the queue, each with its own name, or cancel the tasks. See"
            " manage.py taskqueue why {example}."
        ),
    ),
    "parked": Text(
        "Tasks are parked because no worker that claimed them knows {subject}: {count}. The first"
        " is {example}, parked for {age}: it fails {fails}.",
        gettext_noop(
            "Start workers whose code has the task, restart workers with old code, or cancel the"
            " tasks. See manage.py taskqueue why {example}."
        ),
    ),
    "schedule_trouble": Text(
        gettext_noop("The schedule {subject} cannot be served: {detail}"),
        gettext_noop("Fix what it says: manage.py taskqueue schedules show {subject}."),
    ),
    "schedule_paused_itself": Text(
        gettext_noop("The schedule {subject} paused itself after {count} failures in a row."),
        gettext_noop("Fix their cause, then run manage.py taskqueue schedules resume {subject}."),
    ),
    "lost_worker": Text(
        gettext_noop("The worker {subject} was lost: it sent no heartbeat within its lease."),
        gettext_noop("Check its host: was the process killed, out of memory, or disconnected?"),
    ),
    "worker_trouble": Text(
        gettext_noop("The worker {subject} is in trouble: {detail}"),
        gettext_noop("Fix what it says. Restart the worker unless it recovers by itself."),
    ),
    "wedged": Text(
        gettext_noop(
            "The task {subject} has produced no output for far longer than similar tasks."
        ),
        gettext_noop("manage.py taskqueue show {subject}, then stop {subject}."),
    ),
    "lost_holds": Text(
        "Tasks that lost workers hold until their leases expire: {count}. {subject} is held the"
        " longest.",
        gettext_noop(
            "manage.py taskqueue why {subject}; then stop {subject} "
            "--yes, or retry {subject} --yes."
            " Its code may still be running if the worker's host is only disconnected."
        ),
    ),
}


def duration(seconds: float) -> str:
    """Return a duration such as `42 s`, `3.2 h`, in English."""
    with override("en"):
        return short_duration(max(0.0, seconds))
