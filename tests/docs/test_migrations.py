"""The guides to migrate from other task queues: what their projects become runs here."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from taskqueue import testing
from taskqueue.backend import framework
from taskqueue.declarations import handlers
from taskqueue.models import Lease, Task
from tests.documents import Page, page

pytestmark = pytest.mark.django_db
AFTER = "shop/tasks.py, after"


def run_calls(guide: Page) -> tuple[dict[str, Any], list[testing.Run]]:
    """Make the calls of a guide; return their names, and the attempts that were due."""
    calls: dict[str, Any] = {}
    exec(guide.titled("calls, after"), calls)
    return calls, testing.run_due(errors="raise")


def outcomes(runs: list[testing.Run]) -> list[tuple[str, str]]:
    return sorted((run.name.removeprefix("shop.tasks."), run.outcome) for run in runs)


def test_ten_tasks_of_celery_run_here(names: dict[str, Any], mailoutbox: list[Any]) -> None:
    guide = page("migrate-from-celery.md")
    exec(guide.titled(AFTER), names)
    calls, runs = run_calls(guide)
    assert outcomes(runs) == [
        ("charge", "succeeded"), ("count_words", "succeeded"), ("count_words", "succeeded"),
        ("make_thumbnail", "succeeded"), ("send_receipt", "succeeded"), ("total", "succeeded"),
    ]  # fmt: skip
    assert calls["status"] == "ready"
    calls["run"].refresh()
    assert calls["run"].return_value == 3
    assert mailoutbox[0].to == ["ada@example.com"]

    for name, arguments in {
        "render_report": ["2026-11-26"], "push": [7], "import_rows": [[1, 2, 3]], "remind": [7],
    }.items():  # fmt: skip
        names[name].enqueue(*arguments)
    assert {run.status for run in testing.run_due(errors="raise")} == {"succeeded"}


def test_a_task_of_celery_that_retries_itself_does_so_here(names: dict[str, Any]) -> None:
    exec(page("migrate-from-celery.md").titled(AFTER), names)
    names["fetch_rate"].enqueue("XXX")
    runs = testing.run_due(backoff="skip")
    assert [run.status for run in runs] == ["retrying"] * 3 + ["failed"]


def test_pauses_that_a_function_tells_are_those_of_celery(names: dict[str, Any]) -> None:
    exec(page("migrate-from-celery.md").titled("pauses, after"), names)
    result = names["order_paper"].enqueue(500)
    pauses = []
    for attempt in (1, 2, 3):
        [run] = testing.run_due()
        assert (run.attempt, run.status) == (attempt, "retrying")
        task = Task.objects.get(id=result.id)
        assert task.finished_at is None
        pause = task.run_after - Lease.objects.latest("attempt").finished_at
        pauses.append(round(pause.total_seconds()))
        result.run_now()
    assert pauses == [3, 6, 12]


def test_a_schedule_of_beat_in_seconds_is_one_here(names: dict[str, Any]) -> None:
    exec(page("migrate-from-celery.md").titled("beat, after"), names)
    [schedule] = names["poll"].options.schedule
    assert schedule.rule.text == "Every 30 seconds"


def test_a_base_class_of_celery_becomes_a_decorator_and_a_handler(
    names: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    exec(page("migrate-from-celery.md").titled("base, after"), names)
    names["send_invoice"].enqueue(7)
    with testing.subscribed(names["tell"]):
        runs = testing.run_due(backoff="skip")
    assert [run.status for run in runs] == ["retrying"] * 3 + ["failed", "succeeded"]
    assert "billing.invoice gave up with [7]: 7" in caplog.messages


def test_tasks_of_django_q2_run_here(names: dict[str, Any], mailoutbox: list[Any]) -> None:
    guide = page("migrate-from-django-q2.md")
    exec(guide.titled(AFTER), names)
    calls, runs = run_calls(guide)
    assert outcomes(runs) == [
        ("clean_up", "succeeded"), *[("count_words", "succeeded")] * 3,
        ("send_receipt", "succeeded"),
    ]  # fmt: skip
    assert calls["status"] == "ready"
    calls["words"].refresh()
    assert calls["words"].return_value == [2, 1]
    assert "shop.tasks.note_result" in handlers.declared()


def test_tasks_of_rq_run_here(names: dict[str, Any]) -> None:
    guide = page("migrate-from-rq.md")
    exec(guide.titled(AFTER), names)
    _, runs = run_calls(guide)
    assert outcomes(runs) == [("charge", "succeeded"), *[("tell", "succeeded")] * 2]


def test_tasks_of_huey_run_here(names: dict[str, Any]) -> None:
    guide = page("migrate-from-huey.md")
    exec(guide.titled(AFTER), names)
    _, runs = run_calls(guide)
    assert outcomes(runs) == [
        *[("charge", "succeeded")] * 2, *[("take_stock", "succeeded")] * 2, ("tell", "succeeded"),
    ]  # fmt: skip


def test_tasks_of_django_tasks_db_stay_as_they_are(
    names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = page("migrate-from-django-tasks-db.md")
    # On Django 5.2 the package `django-tasks` has the same names.
    package = sys.modules[framework.Task.__module__.partition(".base")[0]]
    monkeypatch.setitem(sys.modules, "django.tasks", package)
    exec(guide.titled("shop/tasks.py, before"), names)
    calls, runs = run_calls(guide)
    assert outcomes(runs) == [("send_receipt", "succeeded")]
    calls["found"].refresh()
    assert calls["found"].return_value == "receipt for order 42"
    exec(guide.titled("shop/more.py, after"), names)
    names["fetch_rates"].enqueue()
    assert outcomes(testing.run_due()) == [("fetch_rates", "succeeded")]
