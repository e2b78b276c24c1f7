"""The kinds of alert rules: their subjects, and the defaults of their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

# Seconds between two checks of a rule, and checks without the condition that clear an incident.
EVERY = 15
GOOD_LOOKS = 2
# Seconds between two messages of one rule: news in between is gathered into the next one.
GATHERED = 300
# Seconds between two reminders of a firing alert, if the rule does not say.
REPEAT = 4 * 3600
# The most subjects of one rule that are distinguished.
MOST_SUBJECTS = 200
MOST_RECIPIENTS = 20
# How many attempts a failure rate needs.
LEAST_ATTEMPTS = 20
# The largest threshold of any kind.
LARGEST = 1_000_000_000.0


class AlertKind(StrEnum):
    """The condition that a rule looks for."""

    FAILURE = "failure"
    FAILURE_RATE = "failure_rate"
    QUEUE_LATENCY = "queue_latency"
    QUEUE_DEPTH = "queue_depth"
    QUEUE_UNSERVED = "queue_unserved"
    QUEUE_STALLED = "queue_stalled"
    NO_WORKER = "no_worker"
    WORKER_LOST = "worker_lost"
    WORKER_TROUBLE = "worker_trouble"
    WEDGED = "wedged"
    SCHEDULE_MISSED = "schedule_missed"
    SCHEDULE_PAUSED = "schedule_paused"
    SCHEDULE_TROUBLE = "schedule_trouble"
    WORKFLOW_FAILED = "workflow_failed"
    WORKFLOW_SLOW = "workflow_slow"
    LIMIT_SATURATED = "limit_saturated"
    FAILURE_JUMP = "failure_jump"
    NEW_ERROR = "new_error"
    LONG_RUN = "long_run"
    QUEUE_GROWING = "queue_growing"
    WORKERS_ABSENT = "workers_absent"
    TAGS_ABSENT = "tags_absent"
    PARKED = "parked"
    DOCTOR = "doctor"
    HEARTBEAT = "heartbeat"


class AlertScope(StrEnum):
    """The kind of name that the pattern of a rule matches."""

    ALL = "all"
    QUEUE = "queue"
    NAME = "name"
    SCHEDULE = "schedule"
    WORKFLOW = "workflow"
    WORKER = "worker"
    LIMIT = "limit"


class IncidentStatus(StrEnum):
    """Where an incident stands."""

    # The condition holds, but not for as long as the rule asks.
    PENDING = "pending"
    FIRING = "firing"
    ENDED = "ended"


class RuleSource(StrEnum):
    """Where a rule is edited."""

    # `notify=` of a definition, or the setting `ALERTS`.
    CODE = "code"
    ROW = "row"


@dataclass(frozen=True, kw_only=True)
class KindDetails:
    """The defaults and texts of the rules of a kind."""

    # The scopes to which a rule may be limited.
    scopes: tuple[AlertScope, ...] = ()
    threshold: float | None = None
    # The least and the most that a threshold may be.
    least: float = 0.0
    most: float = LARGEST
    # Seconds of the window, for kinds that count.
    window: int | None = None
    # Seconds for which the condition must hold.
    wait: int = 0
    # The unit of the value: `seconds`, `share`, `times` or nothing, for a number.
    unit: str = ""
    # Whether each further case is news, if one is enough to raise.
    counts_each: bool = False
    # Whether it is among the default rules of the setting `ALERTS`.
    is_default: bool = True


_QUEUE = (AlertScope.QUEUE,)
_NAME = (AlertScope.NAME,)
_RUNS = (AlertScope.NAME, AlertScope.QUEUE)
_SCHEDULE = (AlertScope.SCHEDULE,)
_WORKFLOW = (AlertScope.WORKFLOW,)
_WORKER = (AlertScope.WORKER,)
KINDS: dict[AlertKind, KindDetails] = {
    AlertKind.FAILURE: KindDetails(
        scopes=_RUNS,
        threshold=1,
        least=1,
        most=10_000,
        window=900,
        counts_each=True,
        is_default=False,
    ),
    AlertKind.FAILURE_RATE: KindDetails(
        scopes=_RUNS, threshold=0.1, most=1, window=900, unit="share"
    ),
    AlertKind.QUEUE_LATENCY: KindDetails(scopes=_QUEUE, threshold=300, unit="seconds"),
    # A check counts up to this many tasks.
    AlertKind.QUEUE_DEPTH: KindDetails(scopes=_QUEUE, threshold=10_000, least=1, most=1_000_000),
    AlertKind.QUEUE_UNSERVED: KindDetails(scopes=_QUEUE, wait=60),
    AlertKind.QUEUE_STALLED: KindDetails(scopes=_QUEUE, wait=60),
    AlertKind.NO_WORKER: KindDetails(wait=60),
    AlertKind.WORKER_LOST: KindDetails(scopes=_WORKER),
    AlertKind.WORKER_TROUBLE: KindDetails(scopes=_WORKER),
    AlertKind.WEDGED: KindDetails(scopes=_RUNS),
    AlertKind.SCHEDULE_MISSED: KindDetails(scopes=_SCHEDULE, unit="seconds"),
    AlertKind.SCHEDULE_PAUSED: KindDetails(scopes=_SCHEDULE),
    AlertKind.SCHEDULE_TROUBLE: KindDetails(scopes=_SCHEDULE),
    AlertKind.WORKFLOW_FAILED: KindDetails(
        scopes=_WORKFLOW, threshold=1, least=1, most=10_000, window=900, counts_each=True
    ),
    AlertKind.WORKFLOW_SLOW: KindDetails(scopes=_WORKFLOW, threshold=3, least=1, unit="times"),
    AlertKind.LIMIT_SATURATED: KindDetails(scopes=(AlertScope.LIMIT,), wait=900),
    AlertKind.FAILURE_JUMP: KindDetails(scopes=_NAME),
    AlertKind.NEW_ERROR: KindDetails(scopes=_NAME),
    AlertKind.LONG_RUN: KindDetails(scopes=_NAME, unit="seconds"),
    AlertKind.QUEUE_GROWING: KindDetails(scopes=_QUEUE),
    AlertKind.WORKERS_ABSENT: KindDetails(scopes=_QUEUE),
    AlertKind.TAGS_ABSENT: KindDetails(scopes=_QUEUE, wait=60),
    AlertKind.PARKED: KindDetails(scopes=_NAME),
    AlertKind.DOCTOR: KindDetails(),
    # Its threshold is the number of seconds between two calls.
    AlertKind.HEARTBEAT: KindDetails(threshold=60, least=EVERY, unit="seconds", is_default=False),
}


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A subject for which the condition of a rule holds, at one look."""

    # The queue, name, worker, schedule, workflow, limit or check; empty for the whole fleet.
    subject: str
    # A sentence, and the remedy, in English; may contain text from users.
    summary: str
    remedy: str = ""
    # The sentence in the form of `Sentence.words`; empty if it exists only in English.
    words: Mapping[str, Any] = field(default_factory=dict)
    value: float | None = None
    # For `counts_each`: the cases within the window, and when the latest of them came.
    count: int = 1
    latest_at: datetime | None = None
    # The id of a task or workflow as an example, if there is one.
    example: str = ""
