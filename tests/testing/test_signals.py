"""The signals of an attempt, as docs/logging.md tells them."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue.signals import task_finished, task_started
from taskqueue.testing import run_due
from tests.sample import tasks

pytestmark = pytest.mark.django_db


def test_a_start_and_an_end_are_told_with_what_they_are_about() -> None:
    heard: list[Any] = []

    def on_start(sender: Any, task_result: Any, **kwargs: Any) -> None:
        heard.append(("started", sender, str(task_result.id)))

    def on_end(sender: Any, task_result: Any, outcome: Any, error: Any, **kwargs: Any) -> None:
        heard.append((outcome.kind, sender, str(task_result.id), type(error)))

    task_started.connect(on_start)
    task_finished.connect(on_end)
    try:
        added, failed = tasks.add.using(priority=5).enqueue(1), tasks.fail.enqueue()
        run_due()
    finally:
        task_started.disconnect(on_start)
        task_finished.disconnect(on_end)

    assert heard == [
        ("started", tasks.add, str(added.id)),
        ("succeeded", tasks.add, str(added.id), type(None)),
        ("started", tasks.fail, str(failed.id)),
        ("failed", tasks.fail, str(failed.id), ValueError),
    ]
