"""A condition that needs attention: its code, and a sentence and a remedy in English."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from shlex import quote
from typing import Any

from django.utils.translation import gettext, override

from taskqueue.conf import get_settings
from taskqueue.core.sentences import Sentence
from taskqueue.monitoring.durations import short_duration
from taskqueue.monitoring.notice_texts import TEXTS, Code

WARNING, ERROR = "warning", "error"


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
        """The sentence as `Sentence.words` has it, and the remedy, for other languages."""
        sentence, remedy = TEXTS[self.code]
        return Sentence(sentence, self._values()).words | {"remedy": remedy}

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


def duration(seconds: float) -> str:
    """Return a duration such as `42 s`, `3.2 h`, in English."""
    with override("en"):
        return short_duration(max(0.0, seconds))
