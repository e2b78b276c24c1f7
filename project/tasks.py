"""The tasks and the workflow of the demo."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.utils import timezone

from project.models import SourceFile
from project.sources import PYTHON, count_source, find_sources
from taskqueue import Context, Every, Fixed, GiveUp, Scheduled, task, workflow
from taskqueue.workflows import Builder

BATCH = 100
LONGEST_LIST = 10
AT_ONCE = 50
"""Files of the workflow that are sent at once."""
EXPORT_STEPS, EXPORT_SECONDS = 20, 10
SOON = 10
"""The priority of what must not wait behind thousands of files."""


@task(takes_context=True)
def walk(context: Context, root: str) -> int:
    """Enqueue a `scan` for every source file below `root`; return how many there are."""
    paths = find_sources(Path(root))
    if not paths:
        raise GiveUp(f"There is no source file in {root}.")
    for start in range(0, len(paths), BATCH):
        batch = paths[start : start + BATCH]
        scan.enqueue_many([((root, path), {}) for path in batch])
        done = start + len(batch)
        context.progress(done, len(paths), f"{done} of {len(paths)} files enqueued")
    return len(paths)


# A file that cannot be parsed will not be parsed the next time either; a disk may recover.
@task(max_attempts=3, backoff=Fixed(0.5), give_up_on=(SyntaxError, ValueError))
def scan(root: str, path: str) -> int:
    """Count one file and keep the result: once, however often it runs. Return its lines."""
    count = count_source(Path(root, path))
    values = {"kind": Path(path).suffix, "scanned_at": timezone.now(), **asdict(count)}
    SourceFile.objects.bulk_create(
        [SourceFile(path=path, **values)],
        update_conflicts=True,
        unique_fields=["path"],
        update_fields=list(values),
    )
    return count.lines


@task(takes_context=True)
def summarize(context: Context) -> dict[str, Any]:
    """Add up what the scans have found."""
    files = SourceFile.objects.all()
    total = files.count() or 1
    kinds: dict[str, Counter[str]] = {}
    modules: Counter[str] = Counter()
    for done, file in enumerate(files.iterator(chunk_size=500), start=1):
        kind = kinds.setdefault(file.kind, Counter())
        kind.update(files=1, lines=file.lines, words=file.words, imports=file.imports)
        modules.update(name for name in file.modules if not name.startswith("."))
        if done % BATCH == 0 or done == total:
            context.progress(done, total, f"{done} of {total} files")
    largest = files.order_by("-lines", "path").values_list("path", "lines")[:LONGEST_LIST]
    return {
        "kinds": {kind: dict(count) for kind, count in kinds.items()},
        "modules": modules.most_common(LONGEST_LIST),
        "largest": list(largest),
    }


@task(takes_context=True, priority=SOON)
def export(context: Context) -> int:
    """Make a list of all files, slowly enough to be watched; return how many there are."""
    paths = list(SourceFile.objects.order_by("path").values_list("path", flat=True))
    for done in range(1, EXPORT_STEPS + 1):
        time.sleep(EXPORT_SECONDS / EXPORT_STEPS)
        ready = len(paths) * done // EXPORT_STEPS
        context.progress(done, EXPORT_STEPS, f"{ready} of {len(paths)} files")
    return len(paths)


@task
def find_modules(root: str) -> list[str]:
    """Return the paths of all Python files below `root`."""
    return [str(Path(root, path)) for path in find_sources(Path(root)) if path.endswith(PYTHON)]


@task
def imported_by(path: str) -> list[str]:
    """Return the modules that one file imports, each as often as it does."""
    return [name for name in count_source(Path(path)).modules if not name.startswith(".")]


@task
def most_common(imports: list[list[str]]) -> list[tuple[str, int]]:
    """Reduce what all files import to the modules that are imported most."""
    counts = Counter(name for modules in imports for name in modules)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:LONGEST_LIST]


@workflow
def most_imported(wf: Builder, root: str) -> None:
    """Find the modules that the files below `root` import most: one task a file, then one."""
    paths = wf.step(find_modules.s(root), name="find")
    imports = wf.step(imported_by.map(paths), name="read", concurrency=AT_ONCE)
    wf.step(most_common.s(imports), name="reduce")


@task(takes_context=True, max_attempts=3, backoff=Fixed(0.5))
def stumble(context: Context) -> str:
    """Fail at the first attempt, and do well at the second."""
    if context.attempt == 1:
        raise ConnectionError("The first attempt always fails. The next one will do.")
    return f"succeeded at attempt {context.attempt}"


@task(api=True)
def remind(text: str) -> str:
    """Return the text: of interest is only when it ran."""
    return text


@task
def fail_for_good() -> None:
    """Fail, so that the admin has a failure to show."""
    raise RuntimeError("This task is meant to fail, so that there is a failure to look at.")


# Missed times are of no use to anybody later.
STOCK = Scheduled(Every(seconds=10), name="take-stock", missed="skip")


@task(takes_context=True, schedule=STOCK, priority=SOON)
def take_stock(context: Context) -> dict[str, Any]:
    """Count what has been read so far, every ten seconds."""
    assert context.nominal_at is not None
    return {"files": SourceFile.objects.count(), "at": context.nominal_at.isoformat()}
