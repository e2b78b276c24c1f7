"""The reasons why a task has its status, with a sentence for each code.

The first sentence of a code whose values are all known is used. The sentences are in English; the
admin's pages translate them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from string import Formatter
from typing import Any

from django.utils.translation import gettext_noop as _

# Before it runs.
BLOCKED, NOT_DUE, RETRY_DUE, DUE = "blocked", "not_due", "retry_due", "due"
DEADLINE_PASSED, EXPIRED, UNKNOWN = "deadline_passed", "expired", "unknown"
QUEUE_PAUSED, UNSERVED, NOT_TAKING = "queue_paused", "unserved", "not_taking"
WORKERS_ABSENT, WORKER_TROUBLE = "workers_absent", "worker_trouble"
SLOTS_BUSY, BEHIND, IN_LINE = "slots_busy", "behind", "in_line"
# For several workers.
UNSEATED, MORE_WORKERS, TOO_FEW_WORKERS = "unseated", "more_workers", "too_few_workers"
WORKER_WAITS = "worker_waits"
# While it runs.
RUNNING, CLAIMED, LEASE_OVER = "running", "claimed", "lease_over"
WORKER_LOST, WORKER_REPLACED, LOST_HOLDS = "worker_lost", "worker_replaced", "lost_holds"
STOP_REQUESTED, WEDGED = "stop_requested", "wedged"
CHANGING = "changing"
# Afterwards.
SUCCEEDED, FAILED, CANCELLED = "succeeded", "failed", "cancelled"
NO_ATTEMPTS_LEFT, NO_CRASHES_LEFT = "no_attempts_left", "no_crashes_left"

SENTENCES: dict[str, tuple[str, ...]] = {
    BLOCKED: (_("It waits for other tasks of its workflow."),),
    NOT_DUE: (_("It is not due until {moment}."),),
    RETRY_DUE: (
        _("Its next attempt is due at {moment}: attempt {attempt} ended with {subject}."),
        _("Its next attempt is due at {moment}."),
    ),
    DUE: (_("It has been due since {moment}. The next running worker makes it ready."),),
    DEADLINE_PASSED: (
        _("Its deadline passed at {moment}. It is no longer started; a running worker ends it."),
    ),
    EXPIRED: (_("It expired at {moment}. It is no longer started; a running worker ends it."),),
    UNKNOWN: (
        _(
            "Since {moment} only workers whose code does not know {subject} have claimed it. It"
            " fails at {fails_at} unless a worker knows it by then."
        ),
    ),
    QUEUE_PAUSED: (
        _("The queue {subject} is paused until {moment}, by {by}: {reason}"),
        _("The queue {subject} is paused until {moment}, by {by}."),
        _("The queue {subject} is paused until {moment}."),
        _("The queue {subject} is paused, by {by}: {reason}"),
        _("The queue {subject} is paused, by {by}."),
        _("The queue {subject} is paused."),
    ),
    UNSERVED: (_("No running worker serves the queue {subject}."),),
    NOT_TAKING: (
        _("The workers of the queue {subject} are quiet or stopping: they claim no new tasks."),
    ),
    WORKERS_ABSENT: (
        _("Only certain workers may run it, and none of them is running: {subject}."),
    ),
    WORKER_TROUBLE: (_("The worker {subject} cannot work: {trouble}"),),
    SLOTS_BUSY: (_("All {slots} slots of the workers of the queue {subject} are busy."),),
    BEHIND: (
        _("At least {at_least} tasks are ahead of it in the queue {subject}."),
        _("Ahead of it in the queue {subject}: {ahead} tasks, {higher} with higher priority."),
    ),
    IN_LINE: (_("It is next: it runs as soon as a worker of its queue has a free slot."),),
    UNSEATED: (
        _("It is to run on every worker of the queue {subject}; no worker has seen it yet."),
    ),
    MORE_WORKERS: (
        _("It is to run on {wanted} workers. Done: {done}, running: {running}, open: {open}."),
    ),
    TOO_FEW_WORKERS: (
        _(
            "It needs {open} more workers of the queue {subject}, but only {able} others that may"
            " run it are running."
        ),
    ),
    WORKER_WAITS: (_("The worker {subject} tries it again at {moment}; other workers go first."),),
    RUNNING: (
        _(
            "The worker {subject} has been running it since {moment}, as attempt {attempt}. Its"
            " lease expires at {expires_at} unless it is renewed."
        ),
    ),
    CLAIMED: (
        _(
            "The worker {subject} claimed it at {moment}, as attempt {attempt}. Its"
            " lease expires at {expires_at} unless it is renewed."
        ),
    ),
    LEASE_OVER: (
        _(
            "The lease of the worker {subject} expired at {moment}. The next running worker takes"
            " the task over."
        ),
    ),
    WORKER_LOST: (
        _("The worker {subject} has sent no heartbeat since {moment}."),
        _("The worker {subject} no longer exists."),
    ),
    WORKER_REPLACED: (
        _("Another process has taken the name of the worker {subject} since it claimed the task."),
    ),
    LOST_HOLDS: (
        _(
            "The lease keeps other workers from the task until {moment}. To end it at once, stop,"
            " cancel or retry the task. Its code may still be running if the worker's host is only"
            " disconnected."
        ),
    ),
    STOP_REQUESTED: (
        _("{subject} asked it to stop at {moment}: {reason}"),
        _("{subject} asked it to stop at {moment}."),
        _("It was asked to stop at {moment}: {reason}"),
        _("It was asked to stop at {moment}."),
    ),
    WEDGED: (
        _("It has produced no output for far longer than similar tasks; noticed at {moment}."),
    ),
    CHANGING: (_("It is changing right now: look again."),),
    SUCCEEDED: (_("It succeeded at {moment}, in attempt {attempt}."),),
    FAILED: (
        _("It failed at {moment} with {subject}: {message}"),
        _("It failed at {moment} with {subject}."),
        _("It failed at {moment}."),
    ),
    CANCELLED: (
        _("It was cancelled at {moment} by {subject}: {reason}"),
        _("It was cancelled at {moment} by {subject}."),
        _("It was cancelled at {moment}: {reason}"),
        _("It was cancelled at {moment}."),
    ),
    NO_ATTEMPTS_LEFT: (_("{most} of {most} attempts failed."),),
    NO_CRASHES_LEFT: (_("{most} attempts were lost, the maximum."),),
}


Detail = str | int | datetime


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A reason why a task waits, is running, or ended."""

    # One of `taskqueue.monitoring.why.codes`; these stay as they are.
    code: str
    # The queue, worker, definition, person or error that it is about.
    subject: str = ""
    # Since when or until when, as the sentence says.
    moment: datetime | None = None
    # What else the sentence names; unknown values are left out.
    details: Mapping[str, Detail] = field(default_factory=dict)

    @property
    def template(self) -> str:
        """The first sentence of its code whose values are all known, as a template."""
        known = {name for name, value in self._values().items() if value not in (None, "")}
        return next(each for each in SENTENCES[self.code] if _names_in(each) <= known)

    @property
    def sentence(self) -> str:
        """The reason in plain English; moments in UTC."""
        return self.template.format(**self.values(_plain))

    def values(self, show: Callable[[Any], Any]) -> dict[str, Any]:
        """Return the values for the template, each formatted by `show`."""
        return {name: show(value) for name, value in self._values().items()}

    def as_dict(self) -> dict[str, Any]:
        """`code`, `message` (the sentence), `subject`, `moment`, `details`."""
        return {
            "code": self.code,
            "message": self.sentence,
            "subject": self.subject,
            "moment": self.moment,
            "details": dict(self.details),
        }

    def _values(self) -> dict[str, Any]:
        return {**self.details, "subject": self.subject, "moment": self.moment}


def _names_in(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return value


def known(**details: Detail | None) -> dict[str, Detail]:
    """Return the details that are known."""
    return {name: value for name, value in details.items() if value not in (None, "")}
