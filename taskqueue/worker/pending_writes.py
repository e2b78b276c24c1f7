"""Outcomes, log lines and progress that are not yet written to the database."""

from __future__ import annotations

from collections.abc import Iterable

from taskqueue.core.outcomes import Outcome
from taskqueue.engine.rows import LogLine, Note
from taskqueue.worker.jobs import Job

Line = tuple[int, float, int, str, str]  # Lease, moment, level, logger, text.


class PendingWrites:
    """Outcomes, lines and progress, each with moments of this host's monotonic clock."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        # Those that a child recorded itself, within an atomic body's transaction.
        self.recorded: list[Outcome] = []
        # Successes that may or may not have been committed, by lease.
        self.unsure: dict[int, Outcome] = {}
        # Names that no child here can run, and when that was found.
        self.unknown: dict[str, float] = {}
        self._logged_unknown: set[str] = set()
        self.lines: list[Line] = []
        self.progress: dict[int, tuple[float, str]] = {}

    @property
    def has_reports(self) -> bool:
        """Whether running bodies have reported something."""
        return bool(self.lines or self.progress)

    def unknown_names(self, now: float, *, limit: float) -> list[str]:
        """The names found unknown less than `limit` seconds ago."""
        self.unknown = {
            name: found_at for name, found_at in self.unknown.items() if now - found_at <= limit
        }
        return list(self.unknown)

    def learn_unknown(self, name: str, now: float) -> bool:
        """Remember that no child here can run that name; whether that is news."""
        self.unknown[name] = now
        is_news = name not in self._logged_unknown
        self._logged_unknown.add(name)
        return is_news

    def take_notes(
        self, running: Iterable[Job], now: float, *, started_before: float
    ) -> list[Note]:
        """Progress, and the starts of bodies that run for a while."""
        progress, self.progress = self.progress, {}
        notes = {
            lease_id: Note(lease_id, None, percent, message)
            for lease_id, (percent, message) in progress.items()
        }
        for job in running:
            if job.started_at is None or job.noted:
                continue
            if job.started_at <= started_before or job.lease_id in notes:
                job.noted = True
                note = notes.get(job.lease_id, Note(job.lease_id, None, None, None))
                notes[job.lease_id] = note._replace(started=now - job.started_at)
        return list(notes.values())

    def put_back(self, outcomes: list[Outcome], lines: list[Line], notes: list[Note]) -> None:
        """Keep what was taken and could not be written for the next time."""
        self.outcomes = outcomes + self.outcomes
        self.lines = lines + self.lines
        for note in notes:
            if note.progress is not None:
                self.progress.setdefault(note.lease_id, (note.progress, note.message or ""))


def aged(outcome: Outcome, now: float) -> Outcome:
    """The outcome, its moments turned into ages for the database's clock to subtract."""
    # Once for every attempt: by position, which costs a third of what `_replace` does.
    started = outcome[9]
    return Outcome._make(
        (
            *outcome[:2],
            now - outcome[2],
            *outcome[3:9],
            None if started is None else now - started,
            *outcome[10:],
        )
    )


def aged_lines(lines: list[Line], now: float) -> list[LogLine]:
    """Captured lines, with their ages."""
    return [LogLine(line[0], now - line[1], *line[2:]) for line in lines]
