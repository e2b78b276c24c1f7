"""The notice of sequences that are halted because a task failed."""

from __future__ import annotations

from collections.abc import Iterator

from taskqueue.monitoring.notice import ERROR, WARNING, Notice
from taskqueue.monitoring.notices.situation import Situation
from taskqueue.monitoring.notices.standing import MOST_HALTED


def halted_sequences(situation: Situation) -> Iterator[Notice]:
    """Yield one notice of all halted sequences: an error if tasks wait behind a failed one."""
    halted = situation.standing.halted[:MOST_HALTED]
    if halted:
        blocking = [each for each in halted if each.has_waiting]
        first = (blocking or halted)[0]
        yield Notice(
            "halted",
            ERROR if blocking else WARNING,
            str(first.task_id),
            count=len(halted),
            is_capped=len(situation.standing.halted) > MOST_HALTED,
            total=len(blocking),
            since=first.since,
        )
