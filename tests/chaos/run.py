"""One run of one fault with one seed, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from tests.chaos.databases import DATABASES, copy_template
from tests.chaos.verdict import Verdict

if TYPE_CHECKING:
    from tests.chaos.faults import Fault
    from tests.chaos.stage import Stage

VERDICT = "verdict.json"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Which run; `tasks` is how many a fault of share 1 enqueues.

    `duration` is for faults that last as long as they are told to; 0: as long as they choose.
    """

    fault: str
    seed: int
    database: str
    tasks: int
    folder: str
    template: str
    duration: float = 0.0

    def text(self) -> str:
        """As an argument of a process."""
        return json.dumps(asdict(self))


def apart(text: str, log_path: str) -> None:
    """Run in a session of its own, as the process that it is for; its output goes to a file."""
    os.setsid()
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT, 0o644)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    main(text)


def main(text: str) -> None:
    """Run, and leave the verdict in the folder."""
    plan = Plan(**json.loads(text))
    folder = Path(plan.folder)
    verdict = Verdict(fault=plan.fault, seed=plan.seed)
    began = time.monotonic()
    signal.signal(signal.SIGTERM, _end)
    try:
        _run(plan, verdict)
    except BaseException as error:
        verdict.problems.append("the run broke down: " + "".join(traceback.format_exception(error)))
    verdict.seconds = time.monotonic() - began
    verdict.save(folder / VERDICT)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _run(plan: Plan, verdict: Verdict) -> None:
    folder = Path(plan.folder)
    copy_template(Path(plan.template), folder)
    from django.db import connection

    from tests.chaos.imported import FAULTS, Stage

    kind = FAULTS[plan.fault]
    if obstacle := kind.obstacle():
        verdict.skipped = obstacle
        return
    with DATABASES[plan.database](folder, server_settings=kind.server_settings) as database:
        connection.settings_dict.update(database.connection)
        stage = Stage(
            database,
            folder=folder,
            seed=plan.seed,
            count=int(plan.tasks * kind.share),
            seconds=kind.seconds,
            duration=plan.duration,
            lease=kind.lease,
        )
        fault = kind(stage)
        try:
            _perform(fault, stage, verdict)
        finally:
            verdict.problems += stage.problems
            stage.close()


def _perform(fault: Fault, stage: Stage, verdict: Verdict) -> None:
    from tests.chaos.judging import judge

    times: dict[str, float] = {}
    verdict.facts["seconds"] = times
    with _timed(times, "prepare"):
        fault.prepare()
    stage.start_load()
    with _timed(times, "strike"):
        fault.strike()
    with _timed(times, "heal"):
        has_ended = stage.settle(fault.healing)
        stage.end_workers()
    with _timed(times, "judge"):
        judge(fault, stage, verdict, has_ended=has_ended)


@contextmanager
def _timed(times: dict[str, float], name: str) -> Iterator[None]:
    """Write down how long a part of the run took."""
    began = time.monotonic()
    try:
        yield
    finally:
        times[name] = round(time.monotonic() - began, 1)
