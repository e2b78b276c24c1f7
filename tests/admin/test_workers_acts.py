"""Workers are asked to be quiet, to stop, to end at once, by those who may, by POST alone."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from taskqueue.models import Audit, Worker
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL, Rows
from tests.admin.schedule_rows import messages_of
from tests.admin.test_admin import url


def press(client: Client, worker: Worker, verb: str, **more: str) -> str:
    """Press a button of a worker; what is told."""
    return messages_of(client, url("worker", "act", worker.pk), {"verb": verb, **more})


def state() -> Any:
    """All that an act could change."""
    return list(Worker.objects.values()), Audit.objects.count(), LogEntry.objects.count()


@pytest.mark.parametrize("verb", ["quiet", "stop", "kill"])
def test_a_worker_is_asked_once(verb: str, rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("viewer", "view_worker", "stop")
    told = press(client, rows.worker, verb, reason=EVIL, confirmed="yes")
    assert "worker-1 is asked" in told
    worker = Worker.objects.get(pk=rows.worker.pk)
    assert (worker.request, worker.requested_by, worker.request_reason) == (verb, "user", EVIL)
    assert Audit.objects.filter(noun="worker", verb=verb, actor="user").count() == 1
    assert LogEntry.objects.count() == 1
    assert "already" in press(client, rows.worker, verb, confirmed="yes")
    assert LogEntry.objects.count() == 1


def test_less_than_was_asked_for_before_changes_nothing(rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    press(client, rows.worker, "stop")
    before = state()
    assert "already" in press(client, rows.worker, "quiet")
    assert state() == before


def test_a_quiet_worker_is_resumed(rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("viewer", "view_worker", "stop")
    assert "is not quiet: nothing to resume" in press(client, rows.worker, "resume")
    press(client, rows.worker, "quiet")
    Worker.objects.update(status="quiet")
    page = client.get(url("worker", "change", rows.worker.pk)).content.decode()
    assert 'value="resume"' in page
    assert "worker-1 is asked to claim" in press(client, rows.worker, "resume", reason=EVIL)
    assert Worker.objects.get().request == ""
    line = Audit.objects.get(noun="worker", verb="resume")
    assert (line.actor, line.reason) == ("user", EVIL)
    press(client, rows.worker, "stop")
    assert "is to stop and cannot be resumed" in press(client, rows.worker, "resume")
    assert Worker.objects.get().request == "stop"


def test_all_quiet_workers_are_resumed_at_once(rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("viewer", "view_worker", "stop")
    listed, resume_all = url("worker", "changelist"), "/admin/taskqueue/worker/resume/"
    assert resume_all not in client.get(listed).content.decode()
    assert "No worker is quiet" in messages_of(client, resume_all, {})
    press(client, rows.worker, "quiet")
    assert resume_all in client.get(listed).content.decode()
    assert client.get(resume_all).status_code == 405
    assert "1 worker is asked" in messages_of(client, resume_all, {"reason": EVIL})
    assert Worker.objects.get().request == ""
    assert Audit.objects.get(noun="worker", verb="resume").reason == EVIL
    assert LogEntry.objects.count() == 2


def test_a_kill_asks_before(rows: Rows, log_in_as: LogIn) -> None:
    client, before = log_in_as("superuser"), state()
    given = {"verb": "kill", "reason": EVIL, "next": "/admin/"}
    answer = client.post(url("worker", "act", rows.worker.pk), given)
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "Kill worker" in page
    assert 'value="/admin/"' in page
    assert EVIL not in page
    assert state() == before


def test_whoever_is_gone_cannot_be_asked(rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    Worker.objects.update(status="stopped")
    before = state()
    assert "nobody to ask" in press(client, rows.worker, "stop")
    assert "cannot be asked" in press(client, rows.worker, "dance")
    for key in (0, 2**63, 10**40):
        answer = client.post(f"/admin/taskqueue/worker/{key}/act/", {"verb": "stop"}, follow=True)
        assert "no such worker" in " ".join(map(str, answer.context["messages"]))
    assert state() == before


@pytest.mark.parametrize("role", ["anonymous", "user", "staff", "viewer"])
def test_users_who_may_not_stop_change_nothing(role: str, rows: Rows, log_in_as: LogIn) -> None:
    before, client = state(), log_in_as(role)
    for verb in ("quiet", "stop", "kill"):
        given = {"verb": verb, "confirmed": "yes"}
        address = url("worker", "act", rows.worker.pk)
        for answer in (client.post(address, given), client.get(address)):
            assert answer.status_code == (302 if role in ("anonymous", "user") else 403)
    assert state() == before


def test_a_get_changes_nothing(rows: Rows, log_in_as: LogIn) -> None:
    client, before = log_in_as("superuser"), state()
    for verb in ("quiet", "stop", "kill"):
        address = url("worker", "act", rows.worker.pk)
        assert client.get(address, {"verb": verb, "confirmed": "yes"}).status_code == 405
    assert state() == before


def test_a_worker_is_changed_by_the_fields_that_differ(rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("viewer", "view_worker", "stop")
    Worker.objects.update(concurrency=4, queues={"mail": 3}, queue_slots={"mail": 2})
    page = client.get(url("worker", "change", rows.worker.pk)).content.decode()
    assert 'name="queues" value="mail=3@2"' in page
    fields = {"concurrency": "4", "queues": "mail=3@1,web", "definition_slots": ""}
    told = press(client, rows.worker, "change", reason=EVIL, **fields)
    assert "is asked to change" in told
    worker = Worker.objects.get(pk=rows.worker.pk)
    assert worker.wanted == {"queues": "mail=3@1,web=1"}
    assert (worker.wanted_by, worker.wanted_reason) == ("user", EVIL)
    assert "not received this yet" in client.get(
        url("worker", "change", rows.worker.pk)
    ).content.decode()  # fmt: skip
    assert Audit.objects.filter(noun="worker", verb="change", actor="user").count() == 1


def test_the_page_of_a_worker_has_it_empty_its_queues_in_their_order_and_no_longer(
    rows: Rows, log_in_as: LogIn
) -> None:
    client = log_in_as("viewer", "view_worker", "stop")
    Worker.objects.update(concurrency=4, queues={"b": 1, "web": 1}, queue_order=["web", "b"])
    fields = {"concurrency": "4", "queues": "web=1,b=1", "definition_slots": ""}
    press(client, rows.worker, "change", strict="on", **fields)
    assert Worker.objects.get(pk=rows.worker.pk).wanted == {"strict": True}
    page = client.get(url("worker", "change", rows.worker.pk)).content.decode()
    assert 'name="strict" checked' in page
    assert 'name="queues" value="web=1,b=1"' in page
    press(client, rows.worker, "change", **fields)
    assert Worker.objects.get(pk=rows.worker.pk).wanted == {"strict": False}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"concurrency": "0"}, "Slots: "),
        ({"concurrency": "x"}, "Slots: "),
        ({"queues": "mail@0"}, "behind @"),
        ({"definition_slots": "a"}, "whole number"),
        ({"queues": "x" * 20_001}, "Queues: "),
    ],
)
def test_a_change_that_no_worker_can_make_is_reported(
    fields: dict[str, str], reason: str, rows: Rows, log_in_as: LogIn
) -> None:
    client = log_in_as("superuser")
    assert reason in press(client, rows.worker, "change", **fields)
    assert Worker.objects.get(pk=rows.worker.pk).wanted == {}
