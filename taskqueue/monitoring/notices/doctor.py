"""The notices of what the doctor found when a worker last ran it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from taskqueue.engine.examinations import LATE, Note, has_words, told_by
from taskqueue.models.alert import LONGEST_SUBJECT
from taskqueue.monitoring.notice import ERROR, WARNING, Notice
from taskqueue.monitoring.notices.situation import Situation

# The most hosts that a sentence names.
MOST_HOSTS = 3


def of_doctor(situation: Situation) -> Iterator[Notice]:
    """Yield the findings that no other notice covers and nobody has acknowledged as alerts.

    What was found on several hosts is one notice.
    """
    acknowledged = situation.standing.acknowledged
    examined = situation.standing.examined
    age = 0.0 if examined is None else (situation.now - examined.at).total_seconds()
    groups: dict[tuple[str, str], list[Note]] = {}
    for note in situation.standing.notes:
        alert = alert_subject_of(note)[:LONGEST_SUBJECT]
        if not note["is_notice"] and alert not in acknowledged:
            groups.setdefault((_subject_of(note), told_by(note)), []).append(note)
    for (subject, _), notes in groups.items():
        first = notes[0]
        hosts = sorted({note["host"] for note in notes if note["host"]})
        yield Notice(
            "doctor",
            ERROR if first["severity"] == "problem" else WARNING,
            subject,
            count=len(hosts) or None,
            seconds=age if age > LATE else None,
            host=named(hosts),
            detail=first["seen"],
            advice=first["remedy"],
            found=first["words"],
            since=datetime.fromisoformat(min(note["since"] for note in notes)),
        )


def alert_subject_of(note: Note) -> str:
    """Return the subject of an alert about a finding.

    The system checks may have several findings with one id, and each of them is an alert.
    """
    return ": ".join(filter(None, [_subject_of(note), "" if has_words(note) else note["seen"]]))


def _subject_of(note: Note) -> str:
    """Return the check, and the subject if there is one."""
    return ": ".join(filter(None, (note["check"], note["subject"])))


def named(hosts: list[str]) -> str:
    """Return the names of the first hosts, and the number of others."""
    more = len(hosts) - MOST_HOSTS
    return ", ".join([*hosts[:MOST_HOSTS], *([f"+{more}"] if more > 0 else [])])
