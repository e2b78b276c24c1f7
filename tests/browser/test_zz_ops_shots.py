"""Screens of the operations pages. Usage under pytest to have a live server."""

import os
from datetime import timedelta
from pathlib import Path
import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from taskqueue.control import TaskFilter, start_operation, cancel_operation
from taskqueue.models import Operation, Task, Worker
from tests.browser.chromium import open_page
from tests.engine.operation_steps import fail, fill, serve_all

pytestmark = pytest.mark.django_db(transaction=True)
OUT = Path("/tmp/ops_shots")
OUT.mkdir(exist_ok=True)


def test_shots(live_server):
    fail(60)
    fill(5)
    fill(4, run_after=timedelta(hours=3))
    now = timezone.now()
    Worker.objects.create(
        name="w1",
        host="h",
        pid=1,
        started_at=now,
        seen_at=now + timedelta(hours=1),
        queues={},
        versions={},
    )
    ops = []
    a = start_operation(
        "retry",
        TaskFilter(statuses=["failed"]),
        query='status:failed error:"out of stock" name:shop.tasks.send_receipt',
        by="ada",
        reason="The shop's mail server is back; they can all be sent again.",
    )
    b = start_operation(
        "update",
        TaskFilter(statuses=["ready"]),
        query="status:ready",
        by="bob",
        arguments={"changes": {"priority": 5, "queue_name": "mail"}},
    )
    c = start_operation(
        "delete",
        TaskFilter(ids=list(Task.objects.values_list("id", flat=True)[:7])),
        by="ada",
        reason="x",
    )
    d = start_operation("run_now", TaskFilter(name="x"), query="name:x", by="carl")
    e = start_operation(
        "cancel", TaskFilter(name="x"), query="name:x status:ready,scheduled", by="carl"
    )
    Operation.objects.filter(id=a.id).update(
        status="running",
        expected=8214,
        matched=3120,
        done=3104,
        started_at=now - timedelta(seconds=12),
        progressed_at=now,
    )
    Operation.objects.filter(id=b.id).update(
        status="finished",
        expected=500,
        matched=500,
        done=498,
        started_at=now - timedelta(seconds=12),
        progressed_at=now,
        finished_at=now,
    )
    Operation.objects.filter(id=c.id).update(
        status="failed",
        expected=7,
        matched=0,
        done=0,
        started_at=now - timedelta(seconds=12),
        progressed_at=now,
        finished_at=now,
        error="OperationalError: canceling statement due to statement timeout\nDETAIL: none",
    )
    Operation.objects.filter(id=d.id).update(expected=None)
    Operation.objects.filter(id=e.id).update(
        status="cancelled",
        finished_at=now,
        expected=None,
        matched=1200,
        done=1200,
        started_at=now - timedelta(seconds=12),
        progressed_at=now,
    )
    user = User.objects.create_superuser("admin", password="admin")
    pages = {
        "list": "/admin/taskqueue/operation/",
        "running": f"/admin/taskqueue/operation/{a.id}/change/",
        "finished": f"/admin/taskqueue/operation/{b.id}/change/",
        "failed": f"/admin/taskqueue/operation/{c.id}/change/",
        "waiting": f"/admin/taskqueue/operation/{d.id}/change/",
        "start": "/admin/taskqueue/operation/start/?verb=retry&q=status:failed",
        "start-update": "/admin/taskqueue/operation/start/?verb=update&q=status:ready,scheduled",
        "start-reschedule": "/admin/taskqueue/operation/start/?verb=reschedule&q=status:scheduled",
        "start-delete": "/admin/taskqueue/operation/start/?verb=delete&q=status:failed",
        "start-bad": "/admin/taskqueue/operation/start/?verb=delete&q=stutus:failed",
        "start-none": "/admin/taskqueue/operation/start/?verb=stop&q=name:x",
        "tasks": "/admin/taskqueue/task/",
    }
    with open_page() as page:
        problems = []
        page.on("console", lambda m: problems.append(m.text))
        page.on("pageerror", lambda e: problems.append(str(e)))
        page.goto(live_server.url + "/admin/")
        page.fill("#id_username", "admin")
        page.fill("#id_password", "admin")
        page.click("text=Log in")
        for theme in ("light", "dark"):
            page.evaluate(f"localStorage.setItem('theme', '{theme}')")
            for name, address in pages.items():
                page.set_viewport_size({"width": 1280, "height": 900})
                page.goto(live_server.url + address)
                page.screenshot(path=OUT / f"{name}-{theme}.png", full_page=True)
                if theme == "light":
                    page.set_viewport_size({"width": 360, "height": 740})
                    page.goto(live_server.url + address)
                    page.screenshot(path=OUT / f"{name}-360.png", full_page=True)
                    print(name, page.evaluate("document.documentElement.scrollWidth"))
        print(problems)
