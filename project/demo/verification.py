"""Whether the queue did what it was asked to: compared with a count that knows no queue.

The direct count finds and measures the files by other means than the tasks do, so that the two
agree only if both are right.
"""

from __future__ import annotations

import ast
import os
import re
import tokenize
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.db.models import Sum

from project import tasks
from project.demo.work import OURS, OWN, Work
from project.models import SourceFile
from project.sources import KINDS, PYTHON
from taskqueue.core.states import TaskStatus
from taskqueue.core.workflow_states import WorkflowStatus
from taskqueue.models import Schedule, Task

WORD = re.compile(r"\S+")
LONGEST_LIST = 5


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The sums over all files."""

    files: int = 0
    lines: int = 0
    words: int = 0
    imports: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{number:,} {name}" for name, number in asdict(self).items())


def find_problems(root: Path, work: Work) -> list[str]:
    """Return what is not as it should be, in sentences; nothing when all is well."""
    return [
        *_unexpected_ends(work),
        *_broken_promises(work),
        *_failed_runs(),
        *_lost_or_doubled(root),
        *_wrong_totals(root),
        *_wrong_reduction(work),
    ]


def _unexpected_ends(work: Work) -> Iterator[str]:
    astray = Task.objects.filter(OURS).exclude(status=TaskStatus.SUCCEEDED)
    astray = astray.exclude(id=work.doomed.id).order_by("name", "id")
    for task in astray[:LONGEST_LIST]:
        yield (
            f"{task.name} {_shortened(task.args)} {task.status}:"
            f" {task.error_class} {task.error_message}".rstrip(": ")
        )
    if (number := astray.count()) > LONGEST_LIST:
        yield f"... and {number - LONGEST_LIST:,} other tasks did not succeed."


def _broken_promises(work: Work) -> Iterator[str]:
    work.refresh()
    if work.doomed.status != TaskStatus.FAILED:
        yield f"The task that is meant to fail {work.doomed.status}."
    if len(work.retried.errors) != 1:
        yield f"The retried task failed {len(work.retried.errors)} times, not once."
    delayed = Task.objects.get(id=work.delayed.id)
    if delayed.started_at is None or delayed.started_at < delayed.run_after:
        yield f"The delayed task started at {delayed.started_at}, not after {delayed.run_after}."


def _failed_runs() -> Iterator[str]:
    """Return the troubles of schedules, whose runs nobody enqueued."""
    for schedule in Schedule.objects.exclude(last_status=TaskStatus.SUCCEEDED):
        yield f"The last run of {schedule.name} {schedule.last_status}: {schedule.last_error}"
    for schedule in Schedule.objects.exclude(trouble=""):
        yield f"The schedule {schedule.name} is in trouble: {schedule.trouble}"


def _lost_or_doubled(root: Path) -> Iterator[str]:
    files = set(_files(root))
    recorded = set(SourceFile.objects.values_list("path", flat=True))
    if lost := sorted(files - recorded):
        yield f"{len(lost):,} of {len(files):,} files were not recorded: {_listed(lost)}."
    if invented := sorted(recorded - files):
        yield f"{len(invented):,} files were recorded that are not there: {_listed(invented)}."
    scans = Task.objects.filter(name=tasks.scan.name).count()
    if scans != len(files):
        yield f"There are {scans:,} scans of {len(files):,} files."


def _wrong_totals(root: Path) -> Iterator[str]:
    direct = count_directly(root)
    recorded = Totals(files=SourceFile.objects.count(), **_sums())
    if recorded != direct:
        yield f"The tasks counted {recorded}. A direct count finds {direct}."


def _wrong_reduction(work: Work) -> Iterator[str]:
    run = work.reduced
    if run.status != WorkflowStatus.SUCCEEDED:
        yield f"The workflow {run.name} {run.status}: {run.error}"
        return
    direct = [[name, number] for name, number in reduce_directly(OWN).items()]
    if run.return_value != direct:
        yield f"The workflow found {run.return_value}. A plain loop finds {direct}."


def reduce_directly(root: Path) -> dict[str, int]:
    """Return what the files import most, the most first, by one loop in this process."""
    counts: dict[str, int] = {}
    for path in (root / name for name in _files(root)):
        if path.suffix == PYTHON:
            for node in ast.walk(ast.parse(path.read_bytes())):
                names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.level == 0:
                    names = [str(node.module)]
                for name in names:
                    counts[name] = counts.get(name, 0) + 1
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    return {name: counts[name] for name in ordered[: tasks.LONGEST_LIST]}


def _sums() -> dict[str, int]:
    names = ("lines", "words", "imports")
    sums = SourceFile.objects.aggregate(**{name: Sum(name, default=0) for name in names})
    return {name: int(sums[name]) for name in names}


def count_directly(root: Path) -> Totals:
    """Measure the files one after the other, in this process."""
    files = lines = words = imports = 0
    for path in (root / name for name in _files(root)):
        files += 1
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                lines += 1
                words += len(WORD.findall(line))
        if path.suffix == PYTHON:
            imports += _count_imports(path)
    return Totals(files=files, lines=lines, words=words, imports=imports)


def _count_imports(path: Path) -> int:
    """Each import statement holds the keyword once, and nothing else does."""
    try:
        with path.open("rb") as file:
            tokens = list(tokenize.tokenize(file.readline))
    except (SyntaxError, tokenize.TokenError):
        return 0  # The task that read this file has failed, and is reported.
    return sum(token.type == tokenize.NAME and token.string == "import" for token in tokens)


def _files(root: Path) -> Iterator[str]:
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            if path.suffix in KINDS and path.is_file():
                yield path.relative_to(root).as_posix()


def _listed(names: list[str]) -> str:
    more = ", ..." if len(names) > LONGEST_LIST else ""
    return ", ".join(names[:LONGEST_LIST]) + more


def _shortened(args: list[Any]) -> str:
    return ", ".join(str(arg) for arg in args)
