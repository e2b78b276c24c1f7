"""A refresh returns only the fragment, and only if it has changed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from taskqueue.models import Queue, Task
from tests.admin.conftest import LogIn
from tests.admin.test_dashboard import URL, make_running, make_worker, region
from tests.monitoring.rows import within_a_minute

REFRESH = {"X-Requested-With": "taskqueue-refresh"}


def ask(client: Client, etag: str = "", **given: str) -> Any:
    """What the script asks for."""
    headers = REFRESH | ({"If-None-Match": etag} if etag else {})
    return client.get(URL, given, headers=headers)


def test_the_fragment_is_the_inner_part_of_the_page(log_in_as: LogIn) -> None:
    make_running(make_worker("worker-1"))
    client = log_in_as("superuser")
    page, fragment = client.get(URL).content.decode(), ask(client).content.decode()
    assert "<html" not in fragment
    assert "csrfmiddlewaretoken" not in fragment
    assert "csrfmiddlewaretoken" in page
    for name in ("state", "notices", "counts", "charts", "running", "queues", "workers"):
        assert region(fragment, name), name


def test_the_page_tells_the_tag_of_what_it_shows(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    page, etag = within_a_minute(
        lambda: (client.get(URL).content.decode(), ask(client).headers["ETag"])
    )
    assert not etag.startswith("W/")
    assert f'data-refresh-etag="{etag}"'.replace(etag, etag.replace('"', "&quot;")) in page


def test_unchanged_content_is_not_sent_again(log_in_as: LogIn) -> None:
    now = timezone.now()
    worker = make_worker("worker-1", seen_at=now + timedelta(minutes=10))  # Lest its age changes.
    make_running(worker, started_at=now - timedelta(hours=30))
    Queue.objects.create(name="default")
    client = log_in_as("superuser")

    def twice() -> tuple[str, Any]:
        etag = ask(client).headers["ETag"]
        return etag, ask(client, etag)

    etag, answer = within_a_minute(twice)
    assert answer.status_code == 304
    assert answer.content == b""
    assert answer.headers["ETag"] == etag


@pytest.mark.parametrize("known", ["W/{}", '"other", {}', 'W/"other", W/{}'])
def test_a_tag_that_was_weakened_on_the_way_is_known(known: str, log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    answer = within_a_minute(lambda: ask(client, known.format(ask(client).headers["ETag"])))
    assert answer.status_code == 304


@pytest.mark.parametrize("known", ["*", '"other"', "nonsense", 'W/"', "\x00"])
def test_another_tag_or_none_is_answered_in_full(known: str, log_in_as: LogIn) -> None:
    assert ask(log_in_as("superuser"), known).status_code == 200


def test_changed_content_is_sent_with_another_tag(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    etag = ask(client).headers["ETag"]
    Task.objects.create(name="a", status="ready", crash_delay=timedelta(seconds=1))
    answer = ask(client, etag)
    assert answer.status_code == 200
    assert answer.headers["ETag"] != etag


def test_the_tag_is_of_the_span_and_of_what_one_may_do(log_in_as: LogIn) -> None:
    make_worker("worker-1")
    client = log_in_as("superuser")
    assert ask(client).headers["ETag"] != ask(client, span="week").headers["ETag"]


def test_a_logged_out_user_gets_no_content(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    etag = ask(client).headers["ETag"]
    client.logout()
    assert ask(client, etag).status_code == 302


def test_a_user_without_the_permission_is_refused(log_in_as: LogIn) -> None:
    client = log_in_as("staff")
    assert ask(client, '"any"').status_code == 403


def test_nobody_keeps_the_answer_for_others(log_in_as: LogIn) -> None:
    answer = ask(log_in_as("superuser"))
    assert "no-store" in answer.headers["Cache-Control"]
    assert "private" in answer.headers["Cache-Control"]
    assert {"Cookie", "X-Requested-With"} <= set(answer.headers["Vary"].split(", "))
