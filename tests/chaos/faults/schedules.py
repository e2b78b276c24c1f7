"""Workers, all of them at once, and the database go away while schedules of seconds run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from django.db import connection

from taskqueue.core.states import FINISHED
from taskqueue.models import Occurrence, Schedule, Task
from taskqueue.models.schedule import OPEN
from taskqueue.worker.takeover import SECOND_LOOK
from tests.chaos.changes import read_changes
from tests.chaos.checker.schedules import Outage, Run, lateness, wrong_schedule
from tests.chaos.faults.base import Fault
from tests.chaos.fleet import TAKEOVER_INTERVAL
from tests.chaos.timetable import Line, create_timetable
from tests.schedules.year.checking import RUN
from tests.worker_process import wait_until

SHORT = 20.0
"""Seconds that it lasts, where nobody says how long."""
LONG = 240.0
"""From so many seconds on there are outages of more than a minute."""
LAST_ACT = 6.0
"""Seconds before the end of all rules, at which the last fault is."""
SETTLING = 5.0
"""Seconds after an outage in which workers are to be there again."""
SCAN = TAKEOVER_INTERVAL + SECOND_LOOK + 0.3
"""Seconds in which a lease that has run out may wait for somebody to take it over."""
LATEST = 5.0
"""Seconds: what is served later than that, while a worker lives, is a violation."""


class SchedulesServed(Fault):
    """Workers and, on PostgreSQL, the server are killed while schedules of seconds run."""

    name = "schedules"
    expectation = "each nominal time once, run or skipped as its policies say; none late"
    share = 0.1
    fleet = (("process", 3), ("thread", 6), ("process", 3))

    def prepare(self) -> None:
        super().prepare()
        stage = self.stage
        self._seconds = stage.duration or SHORT
        self._lines: list[Line] = create_timetable(str(stage.journal), seconds=self._seconds)
        self._began = stage.now()
        self._outages: list[Outage] = []
        self._counts: Counter[str] = Counter()

    def strike(self) -> None:
        end = self._lines[-1].until
        long_ones = [0.2, 0.55] if self._seconds >= LONG else []
        acts = [self._kill_one, self._kill_one, self._kill_one, self._kill_all, self._stop_server]
        act, following = self._kill_all, self._stop_server
        while (now := self.stage.now()) < end - LAST_ACT:
            if long_ones and now > self._began + long_ones[0] * self._seconds:
                long_ones.pop(0)
                act(self.chance.uniform(65, 100))
                act, following = following, act
            else:
                self.chance.choice(acts)(min(self.chance.uniform(0, 6), end - now))
            self.stage.pause(0.5, 3)
        wait_until(lambda: self.stage.now() > end, self._seconds + 10, what="the end of the rules")
        try:
            wait_until(self._is_served, 90, what="the end of all runs")
        except AssertionError as error:
            self.stage.problems.append(str(error))

    # What is done

    def _kill_one(self, seconds: float) -> None:
        stage = self.stage
        worker, began = self.chance.choice(stage.alive()), stage.now()
        worker.kill()
        self._counts["kills"] += 1
        self._start("process" if self.chance.random() < 0.6 else "thread", 4)
        stage.note(self.name, began, worker)

    def _kill_all(self, seconds: float) -> None:
        """Nobody serves anything for so many seconds."""
        stage = self.stage
        workers, began = stage.alive(), stage.now()
        for worker in workers:
            worker.kill()
            self._counts["kills"] += 1
        time.sleep(seconds)
        stage.start_fleet(*self.fleet)
        self._counts["restarts"] += len(self.fleet)
        self._note_outage(began)

    def _stop_server(self, seconds: float) -> None:
        """The database is away; on SQLite, the workers are."""
        stage = self.stage
        server = stage.database.server
        if server is None:
            self._kill_all(seconds)
            return
        began = stage.now()
        if self.chance.random() < 0.5:
            server.stop("immediate")
        else:
            server.kill()
        time.sleep(seconds)
        server.start()
        connection.close()
        self._counts["server restarts"] += 1
        self._note_outage(began)

    def _start(self, pool: str, concurrency: int) -> None:
        self.stage.start_worker(pool, concurrency)
        self._counts["restarts"] += 1

    def _note_outage(self, began: float) -> None:
        stage = self.stage
        self._outages.append(Outage(began, stage.now()))
        self._counts["outages"] += 1
        self._counts["outages of more than 60 s"] += stage.now() - began > 60
        # Without workers, for nobody was there to take anything over; nor what had just run out.
        stage.note(self.name, began - SCAN)

    def _is_served(self) -> bool:
        stage = self.stage
        due, going = (
            Schedule.objects.exclude(next_at=None),
            Occurrence.objects.filter(status__in=OPEN),
        )
        return not stage.ask(due.exists, True) and not stage.ask(going.exists, True)

    # What came of it

    @cached_property
    def _rows(self) -> dict[str, list[Occurrence]]:
        occurrences = Occurrence.objects.order_by("nominal_at", "id")
        return {
            line.name: list(occurrences.filter(schedule_id=line.schedule_id))
            for line in self._lines
        }

    def violations(self) -> Iterator[tuple[int, str]]:
        noted_at = {
            change.task_id: change.at
            for change in read_changes()
            if change.noun == "task" and change.after in FINISHED
        }
        for line in self._lines:
            tasks = Task.objects.filter(schedule_id=line.schedule_id)
            runs = {
                task.id: Run(
                    task.nominal_at, task.status, task.enqueued_at, task.finished_at,
                    noted_at.get(str(task.id)),
                )
                for task in tasks
            }  # fmt: skip
            for text in wrong_schedule(line, self._rows[line.name], runs):
                yield 11, f"{line.name}: {text}"

    def look(self) -> Iterator[str]:
        for schedule in Schedule.objects.exclude(trouble=""):
            yield f"{schedule.name} is in trouble: {schedule.trouble}"
        for seconds, nominal_at in self._lateness:
            if seconds > LATEST:
                yield f"{nominal_at} was served {seconds:.1f} s late, though a worker lived"
        for worker in self.stage.workers:
            if "Schedule not served" in worker.log():
                yield f"{worker.name} could not serve a schedule"

    @cached_property
    def _lateness(self) -> list[tuple[float, object]]:
        rows = [row for rows in self._rows.values() for row in rows]
        return [*lateness(rows, self._outages, settling=SETTLING)]

    def note(self) -> str:
        """What there was, in figures."""
        rows = [row for rows in self._rows.values() for row in rows]
        missed = [row for row in rows if row.reason.startswith("Missed")]
        late = sorted(seconds for seconds, _ in self._lateness) or [0.0]
        figures = {
            "nominal times": sum(row.count for row in rows),
            "occurrences": len(rows),
            "run": sum(row.status in RUN for row in rows),
            "skipped as missed": sum(row.count for row in missed),
            "skipped as overlapping": sum(row.status == "skipped" for row in rows) - len(missed),
            "tasks": Task.objects.filter(schedule__isnull=False).count(),
            **self._counts,
            "latest": f"{late[-1]:.2f} s",
            "median late": f"{late[len(late) // 2]:.3f} s",
        }
        return ", ".join(f"{name} {value}" for name, value in figures.items())
