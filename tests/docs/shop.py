"""The shop that the pages speak of: what its commands and requests are about."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.management.color import no_style
from django.db import connection
from django.utils import timezone

from taskqueue import Sequence, task, workflow
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.rows import Claimed
from taskqueue.models import AlertRule, Delivery, Endpoint, Incident, Limit
from taskqueue.testing import run_due, run_next
from taskqueue.workflows import Builder
from tests.admin.test_dashboard import make_worker
from tests.engine.limit_steps import take
from tests.engine.steps import claim, end

ALERT, ENDPOINT = 17, 3
DELIVERY = UUID("01a214e8-8981-7bcd-ba00-31c9167e9c57")


def declare() -> None:
    """Declare its tasks and workflows. Registries forget them if a fixture has put copies there."""

    def made(name: str, body: Callable[..., Any]) -> Any:
        return task(body, name=name, api=True)

    made("shop.tasks.send_receipt", lambda order_id=0: f"receipt for order {order_id}")
    made("shop.tasks.report", lambda of="", year=0: None)
    made("shop.tasks.export", lambda: None)
    made("shop.tasks.count_orders", lambda: 0)
    load = made("shop.load", lambda path: {"files": [path], "rows": 1})
    clean = made("shop.clean", lambda path: path)
    for name in ("shop.publish", "shop.mail"):
        made(name, lambda found=None: None)

    @workflow(name="shop.nightly", api=True)
    def nightly(wf: Builder, day: str) -> None:
        files = wf.step(load.s(day), name="load")
        wf.step(clean.map(files["files"]), name="clean")


def furnish() -> None:
    """Give it workers, an alert, a limit, a schedule, and an endpoint with a delivery."""
    for name in ("paris-1", "paris-2", "web-1"):
        make_worker(name)
    now = timezone.now()
    rule = AlertRule.objects.create(
        name="failures", kind="failure", scope="name", next_at=now + timedelta(hours=1)
    )
    Incident.objects.create(
        id=ALERT, rule=rule, subject="mail", status="firing", began_at=now, raised_at=now
    )
    Limit.objects.create(name="stripe", concurrency=20)
    endpoint = Endpoint.objects.create(
        id=ENDPOINT, url="https://hooks.example.com/in", secret="whsec_c2VjcmV0c2VjcmV0c2VjcmV0",
        is_enabled=False, disabled_for="failing", failing_since=now,
    )  # fmt: skip
    Delivery.objects.create(
        id=DELIVERY, endpoint=endpoint, seq=1, kind="task.failed", status="failed", attempts=1,
        task_id=_waiting().id,
    )  # fmt: skip
    # On PostgreSQL a sequence may have come to just before an id that was given here.
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), [Endpoint, Incident]):
            cursor.execute(statement)


def task_for(verb: str) -> str:
    """Return the id of a task to which that verb can be done."""
    return str(TASKS.get(verb, _waiting)().id)


def workflow_for(verb: str) -> str:
    """Return the id of a workflow to which that verb can be done."""
    from taskqueue.declarations.workflows.workflow import workflows

    run = workflows.get("shop.nightly").enqueue("2026-11-24")
    if verb in ("retry", "resolve", "delete"):
        fails = "shop.load" if verb == "resolve" else "shop.clean"
        if fails == "shop.clean":
            run_next("shop.load")
        end(_claimed(fails), OutcomeKind.FAILED, error_class="E", error_message="why")
        run_due()
    return str(run.id)


def _definition(**options: Any) -> Any:
    from taskqueue.declarations.definition import registry

    found = registry.get("shop.tasks.send_receipt")
    assert found is not None
    return found.using(**options)


def _waiting() -> Any:
    return _definition(run_after=3600).enqueue(42)


def _claimed(name: str) -> Claimed:
    """Claim all that is due; return the last task of that name."""
    return [each for each in claim() if each.name == name][-1]


def _running() -> Any:
    result = _definition().enqueue(42)
    _claimed(result.name)
    return result


def _failed() -> Any:
    result = _definition(max_attempts=1).enqueue(42)
    end(_claimed(result.name), OutcomeKind.FAILED, error_class="E", error_message="why")
    return result


def _halted() -> Any:
    sequence = Sequence("order_id", on_failure="halt")
    ordered = _definition(sequence=sequence, max_attempts=1)
    result, _ = ordered.enqueue(7), ordered.enqueue(7)
    end(take()[-1], OutcomeKind.FAILED, error_class="E", error_message="why")
    take()
    return result


TASKS: dict[str, Callable[[], Any]] = {
    "retry": _failed, "delete": _failed, "stop": _running, "release": _halted,
}  # fmt: skip
