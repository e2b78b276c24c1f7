"""Whether workers live that may take a task."""

from __future__ import annotations

from collections.abc import Iterator

from taskqueue.monitoring.why import codes
from taskqueue.monitoring.why.reason import Reason
from taskqueue.monitoring.why.surroundings import Surroundings

MOST_NAMED = 20
"""So many names make a sentence long enough."""


def without_workers(around: Surroundings) -> Iterator[Reason]:
    """What is wrong with the workers that it needs; nothing where one of them takes tasks."""
    task, serving = around.task, around.serving
    if task.worker_names is not None:
        named = [each for each in serving if each.name in task.worker_names]
        if not named:
            yield Reason(code=codes.WORKERS_ABSENT, subject=listed(map(str, task.worker_names)))
            return
        serving = named
    if not serving:
        yield Reason(code=codes.UNSERVED, subject=task.queue_name)
    elif not any(each.takes_tasks for each in serving):
        yield Reason(code=codes.NOT_TAKING, subject=task.queue_name)
    elif all(each.trouble for each in serving if each.takes_tasks):
        for each in serving[:MOST_NAMED]:
            if each.takes_tasks:
                yield Reason(
                    code=codes.WORKER_TROUBLE, subject=each.name, details={"trouble": each.trouble}
                )


def listed(names: Iterator[str] | map[str] | list[str]) -> str:
    """Names in a row, cut where there are many."""
    all_names = list(names)
    shown = all_names[:MOST_NAMED]
    return ", ".join(shown) + (" …" if len(all_names) > len(shown) else "")
