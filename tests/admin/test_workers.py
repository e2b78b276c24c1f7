"""The workers: which are alive and which are gone, and each one's page with its attempts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taskqueue import control
from taskqueue.admin import workers
from taskqueue.models import Lease, Task, Worker
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL, SECRET
from tests.admin.test_admin import read, url
from tests.admin.test_queues import hire

pytestmark = pytest.mark.django_db
LIST = "/admin/taskqueue/worker/"
MOST_QUERIES = 15


def hold(worker: str, name: str = "shop.tasks.send", **values: Any) -> Lease:
    """An attempt of that worker that runs."""
    now = timezone.now()
    task = Task.objects.create(
        name=name, status="running", crash_delay=timedelta(seconds=1), args=[SECRET]
    )
    return Lease.objects.create(
        task=task, worker_id=worker, attempt=1, claimed_at=now, started_at=now,
        expires_at=now + timedelta(seconds=30), **values,
    )  # fmt: skip


def end(lease: Lease, status: str = "succeeded", **values: Any) -> Lease:
    """The attempt, ended."""
    Lease.objects.filter(pk=lease.pk).update(status=status, finished_at=timezone.now(), **values)
    return lease


def test_the_living_stand_apart_from_those_that_are_gone(log_in_as: LogIn) -> None:
    hire("worker-1", memory_bytes=200 * 2**20)
    hire("worker-2", status="stopping")
    hire("worker-3", status="stopped")
    hire("worker-4", seen_at=timezone.now() - timedelta(hours=1))
    answer = log_in_as("viewer", "view_worker").get(LIST)
    assert [worker.name for worker in answer.context["living"]] == ["worker-1", "worker-2"]
    assert [worker.name for worker in answer.context["gone"]] == ["worker-4", "worker-3"]
    page = answer.content.decode()
    for words in ("200.0", "draining", "stopped", "lost"):
        assert words in page, words


def test_a_worker_that_is_gone_for_long_is_found_by_its_whole_name(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskqueue.admin.workers.MOST_WORKERS", 1)
    hire("worker-1")
    old = hire("worker-2", status="stopped")
    client = log_in_as("superuser")
    answer = client.get(LIST, {"q": "worker-2"})
    assert (answer.status_code, answer["Location"]) == (302, url("worker", "change", old.pk))
    assert "worker-2" in read(client, url("worker", "change", old.pk))
    assert client.get(LIST, {"q": "\x00"}).status_code == 200


@pytest.mark.parametrize(
    ("status", "verbs"),
    [
        ("running", ["quiet", "stop", "kill"]),
        ("quiet", ["stop", "kill"]),
        ("stopping", ["kill"]),
        ("stopped", []),
    ],
)
def test_a_worker_is_offered_what_it_can_still_be_asked_for(
    status: str, verbs: list[str], log_in_as: LogIn
) -> None:
    worker = hire("worker-1", status=status)
    page = read(log_in_as("superuser"), url("worker", "change", worker.pk))
    for verb in ("quiet", "stop", "kill"):
        assert (f'name="verb" value="{verb}"' in page) == (verb in verbs), verb


def test_buttons_are_for_those_who_may_stop(log_in_as: LogIn) -> None:
    worker = hire("worker-1")
    hold("worker-1")
    client = log_in_as("viewer")
    for address in (LIST, url("worker", "change", worker.pk)):
        assert 'name="verb"' not in read(client, address)


def test_a_page_shows_what_it_holds_and_what_it_did(log_in_as: LogIn) -> None:
    worker = hire("worker-1")
    hold("worker-1", progress=12.5, progress_message="page 1")
    hold("worker-1", name="shop.tasks.wedge", wedged_at=timezone.now())
    hold("worker-2", name="shop.tasks.other")
    end(hold("worker-1", name="shop.tasks.bill"), "failed", error_class="shop.errors.Down")
    answer = log_in_as("viewer").get(url("worker", "change", worker.pk))
    page = answer.content.decode().replace("<wbr>", "")
    slots = answer.context["slots"]
    assert [lease and lease.progress for lease in slots] == [12.5, None, *[None] * (len(slots) - 2)]
    assert len(answer.context["past"]) == 1
    for words in ("page 1", "seems wedged", "shop.tasks.bill", "shop.errors.Down"):
        assert words in page, words
    assert "shop.tasks.other" not in page
    assert SECRET not in page


def test_leases_are_shown_to_those_who_may_view_them(log_in_as: LogIn) -> None:
    worker = hire("worker-1")
    hold("worker-1")
    page = read(log_in_as("viewer", "view_worker"), url("worker", "change", worker.pk))
    assert "shop.tasks.send" not in page
    assert "holds now" not in page


@pytest.mark.parametrize(
    ("listens", "words"),
    [(True, "by notification"), (False, "by polling, behind a pooler"), (None, "")],
)
def test_a_page_says_what_wakes_the_worker_where_that_is_known(
    listens: bool | None, words: str, log_in_as: LogIn
) -> None:
    page = read(log_in_as("viewer"), url("worker", "change", hire("w", listens=listens).pk))
    assert ("Wakes up" in page) == bool(words)
    assert words in page


def test_its_past_is_looked_for_among_the_newest_attempts_alone(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "NEWEST", 3)
    worker = hire("worker-1")
    end(hold("worker-1", name="shop.tasks.old"))
    for _ in range(2):
        end(hold("worker-2"))
    end(hold("worker-1", name="shop.tasks.new"))
    page = read(log_in_as("viewer"), url("worker", "change", worker.pk))
    assert "shop.tasks.new" in page
    assert "shop.tasks.old" not in page


def test_an_attempt_is_shown_also_when_its_task_is_gone(log_in_as: LogIn) -> None:
    worker = hire("worker-1")
    lease = end(hold("worker-1"))
    Task.objects.filter(pk=lease.task_id)._raw_delete("default")  # type: ignore[attr-defined]
    assert str(lease.task_id) in read(log_in_as("viewer"), url("worker", "change", worker.pk))


def test_a_page_says_who_asked_for_what_and_whether_it_was_seen(log_in_as: LogIn) -> None:
    worker = hire("worker-1")
    control.stop_worker("worker-1", by="ann", reason="a new release")
    client = log_in_as("viewer")
    page = read(client, url("worker", "change", worker.pk))
    for words in ("asked to stop by ann", "a new release", "has not received this yet"):
        assert words in page, words
    Worker.objects.update(request_seen_at=timezone.now())
    assert "The worker received this at" in read(client, url("worker", "change", worker.pk))


def test_hostile_text_is_text(log_in_as: LogIn) -> None:
    worker = hire(EVIL, trouble=EVIL, host=EVIL, queues={EVIL: 1}, versions={EVIL: EVIL})
    hold(EVIL, name=EVIL, progress=1, progress_message=EVIL)
    end(hold(EVIL, name=EVIL), "failed", error_class=EVIL)
    control.stop_worker(EVIL, by=EVIL, reason=EVIL)
    client = log_in_as("superuser")
    for address in (LIST, url("worker", "change", worker.pk), f"{LIST}?q={EVIL}"):
        page = read(client, address)
        assert EVIL not in page, address
        assert "&lt;script&gt;alert(" in page, address


def test_the_pages_cost_few_queries(log_in_as: LogIn, django_assert_max_num_queries: Any) -> None:
    for number in range(30):
        worker = hire(f"worker-{number}")
    for _ in range(30):
        hold(worker.name)
        end(hold(worker.name))
    client = log_in_as("viewer")
    for address in (LIST, url("worker", "change", worker.pk)):
        with django_assert_max_num_queries(MOST_QUERIES):
            read(client, address)
