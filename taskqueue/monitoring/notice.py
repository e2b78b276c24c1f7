"""A condition that needs attention: its code, with a sentence and a remedy in English."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from shlex import quote
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.monitoring.notice_texts import OLD_FINDING, OLD_FINDING_ON_HOST, TEXTS, Code
from taskqueue.monitoring.searching.search_tokens import search_text
from taskqueue.monitoring.sentences import Sentence, remedy_of

WARNING, ERROR = "warning", "error"


@dataclass(frozen=True)
class Notice:
    """A condition that was found. The admin's pages have their own translated sentences."""

    code: Code
    # `warning` or `error`.
    level: str
    # The queue, worker, schedule, alert rule, task, or name of tasks.
    subject: str = ""
    # The number of affected tasks; for `failing` the attempts, for a schedule the runs, for
    # `doctor` the hosts.
    count: int | None = None
    # Whether there are more than `count`.
    is_capped: bool = False
    # For `failing` and `failure_jump`, attempts that ended; for `too_few_workers`, the workers that
    # a task needs; for `growing_backlog`, tasks that came recently; for `halted`, the sequences in
    # which tasks wait.
    total: int | None = None
    # The id of the task that has waited longest.
    example: str = ""
    # For `new_error`, how many of `count` belong to workflows, and the workflow of the first of
    # these: only it can be retried.
    in_workflows: int = 0
    workflow: str = ""
    # For how long that task has waited, or the first schedule has been overdue; for `doctor`, the
    # time since a worker last ran it, if that is long.
    seconds: float | None = None
    # The trouble of a worker, schedule or heartbeat; names of workers or tags; the number of
    # missing workers, or of ended attempts; the usual failure rate; the class of an error; a name.
    detail: str = ""
    # The remedy of `doctor`, and the hosts on which it found something that depends on the host.
    advice: str = ""
    host: str = ""
    # The finding of `doctor`, in the form of `Sentence.words`.
    found: Mapping[str, Any] = field(default_factory=dict, compare=False)
    # The run time p95 of the name, for `long_run`; None if too few runs are known.
    usual_seconds: float | None = None
    # Since when the condition holds, if that is known.
    since: datetime | None = field(default=None, compare=False)

    @property
    def sentence(self) -> str:
        """The condition in plain English; may contain text from users."""
        return self._sentence.english

    @property
    def words(self) -> dict[str, Any]:
        """The data to translate the sentence and the remedy."""
        text = TEXTS[self.code]
        remedy = text.remedy
        if self.workflow:
            remedy = text.remedy_of_both if self.has_others else text.remedy_in_workflow
        return self._sentence.words | {"remedy": remedy}

    @property
    def has_others(self) -> bool:
        """Whether some of the tasks belong to no workflow, as far as is known."""
        return self.is_capped or self.in_workflows < (self.count or 0)

    @property
    def remedy(self) -> str:
        """The remedy, with commands that can be pasted into a shell."""
        return remedy_of(self.words).english

    @property
    def translated_remedy(self) -> str:
        """The remedy in the reader's language."""
        return remedy_of(self.found if self.found.get("remedy") else self.words).translated

    @property
    def _sentence(self) -> Sentence:
        text, left = TEXTS[self.code], self._seconds_left
        is_unknown = {
            "new_error": not self.detail,
            "long_run": self.usual_seconds is None,
            "parked": left <= 0,
            "halted": not self.total,
            "doctor": bool(self.host),
        }
        sentence = text.otherwise if is_unknown.get(self.code) else text.sentence
        if self.code == "doctor" and self.seconds is not None:
            sentence = OLD_FINDING_ON_HOST if self.host else OLD_FINDING
        return Sentence(
            sentence,
            {
                "subject": self.subject,
                "count": f"{self.count or 0:,}{'+' if self.is_capped else ''}",
                "total": f"{self.total or 0:,}",
                "example": self.example,
                "detail": self.detail,
                "advice": self.advice,
                "host": self.host,
                "tags": quote(self.detail),
                "workflow": self.workflow,
                "in_workflows": f"{self.in_workflows:,}{'+' if self.is_capped else ''}",
                "error_query": quote(error_query(self.subject, self.detail)),
            },
            ages={
                "age": max(0.0, self.seconds or 0.0),
                "left": max(0.0, left),
                "usual": self.usual_seconds or 0.0,
            },
        )

    @property
    def _seconds_left(self) -> float:
        """Seconds until the task fails that has been parked longest."""
        return get_settings().PARK_LIMIT.total_seconds() - (self.seconds or 0.0)


def error_query(name: str, error_class: str) -> str:
    """Return the search for failed tasks of a kind of error."""
    return search_text(**{"name": name, "status": "failed", "class": error_class})
