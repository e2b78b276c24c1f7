"""The kill matrix: each small run without a bug, and then with each bug that it must reveal."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from tests.chaos.databases import DATABASES, ROOT, copy_template, make_template, remove

LONGEST = 600
"""Seconds after which the runs of one scenario are taken to hang."""
HEADER = f"{'run':28} {'bug':28} {'breaks':>6}  {'found':14} {'took':>5}  caught"


class Row(NamedTuple):
    """What came of one run; without a bug, nothing may be found."""

    scenario: str
    bug: str
    invariant: int | None
    found: list[int]
    seconds: float
    details: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the checker said what it had to."""
        return not self.found if self.invariant is None else self.invariant in self.found

    def __str__(self) -> str:
        found = ", ".join(map(str, self.found)) or "-"
        breaks = "-" if self.invariant is None else self.invariant
        verdict = "yes" if self.is_good else "NO"
        if self.invariant is None:
            verdict = "clean" if self.is_good else "NOT CLEAN"
        bug = self.bug or "(none)"
        return (
            f"{self.scenario:28} {bug:28} {breaks:>6}  {found:14} {self.seconds:>4.0f}s  {verdict}"
        )


def run_matrix(vendor: str, only: Sequence[str], *, jobs: int = 2) -> bool:
    """Run and print the matrix of these bugs, or of all; whether each was caught."""
    plans = _plans(vendor, only)
    folder = Path(tempfile.mkdtemp(prefix="taskqueue-bugs-"))
    folder.chmod(0o755)
    began = time.monotonic()
    rows: list[Row] = []
    print(f"Kill matrix on {vendor}\n{HEADER}", flush=True)
    try:
        make_template(vendor, folder / "template")
        with ThreadPoolExecutor(jobs) as executor:
            running = [
                executor.submit(_run_scenario, vendor, folder, scenario, bugs)
                for scenario, bugs in plans.items()
            ]
            for future in as_completed(running):
                for row in future.result():
                    rows.append(row)
                    print(row, flush=True)
    finally:
        remove(folder / "template")
        shutil.rmtree(folder, ignore_errors=True)
    return _sum_up(rows, time.monotonic() - began)


def _plans(vendor: str, only: Sequence[str]) -> dict[str, list[str]]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.chaos.settings")
    import django

    django.setup()
    from tests.chaos.bugs.catalogue import BUGS

    if unknown := set(only) - BUGS.keys():
        raise SystemExit(f"No bug is named {', '.join(unknown)}. There are {', '.join(BUGS)}.")
    plans: dict[str, list[str]] = {}
    for bug in BUGS.values():
        if vendor in bug.databases and (not only or bug.name in only):
            plans.setdefault(bug.scenario.__name__, []).append(bug.name)
    return plans


def _run_scenario(vendor: str, folder: Path, scenario: str, bugs: list[str]) -> list[Row]:
    """In a process and with a database of its own."""
    own = folder / scenario
    own.mkdir()
    own.chmod(0o755)
    copy_template(folder / "template", own)
    try:
        with DATABASES[vendor](own) as database:
            run = subprocess.run(
                [sys.executable, "-m", "tests.chaos.bugs.run", scenario, str(own), *bugs],
                cwd=ROOT,
                env={**os.environ, **database.environment()},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LONGEST,
            )
    finally:
        remove(own)
    rows = [Row(*json.loads(line)) for line in run.stdout.splitlines() if line.startswith("[")]
    if run.returncode or len(rows) != len(bugs) + 1:
        said = (run.stdout + run.stderr)[-4000:]
        rows.append(Row(scenario, "(broken)", None, [0], 0.0, said))
    return rows


def _sum_up(rows: Sequence[Row], seconds: float) -> bool:
    bad = [row for row in rows if not row.is_good]
    for row in bad:
        print(f"\n{row.scenario} with {row.bug or 'no bug'}:\n{row.details}")
    bugs = [row for row in rows if row.invariant is not None]
    caught = sum(row.is_good for row in bugs)
    print(f"\n{caught} of {len(bugs)} bugs caught, {seconds:.0f} s in all.", flush=True)
    return not bad
