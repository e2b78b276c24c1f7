"""What a request says is heeded, or refused: nothing is done otherwise than it was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import modify_settings, override_settings
from django.test.utils import CaptureQueriesContext

from taskqueue.api.base import ApiView
from taskqueue.api.urls import ADDRESSES
from taskqueue.models import Queue
from tests.api.conftest import ApiClient
from tests.api.test_foundation import PAUSE, problem
from tests.sample.tasks import greet

pytestmark = pytest.mark.django_db


def acts() -> Iterator[tuple[str, str, type[ApiView]]]:
    """Each method that changes something, with an address of its view."""
    for each in ADDRESSES:
        view: Any = each.callback
        for method in view.cls.needs.keys() - {"GET"}:
            yield method, re.sub("<[^>]*>", "mail", str(each.pattern)), view.cls


ACTS = list(acts())


@override_settings(TASKQUEUE={"API_THROTTLE_RATES": dict.fromkeys(("act", "enqueue"))})
def test_an_act_whose_address_says_more_than_it_takes_is_not_done(root: ApiClient) -> None:
    assert len(ACTS) > 20
    for method, path, _ in ACTS:
        told = problem(root.ask(method, f"{path}?dry_run=true"), 400, "invalid")
        assert told["errors"][0]["pointer"] == "/dry_run", path
    problem(root.act("queues/mail/pause/?until=600"), 400, "invalid")
    assert not Queue.objects.exists()


@override_settings(TASKQUEUE={"API_THROTTLE_RATES": dict.fromkeys(("act", "enqueue"))})
def test_an_act_that_heeds_no_condition_is_not_done_under_one(root: ApiClient) -> None:
    plain = [(method, path) for method, path, view in ACTS if not view.is_conditional]
    assert ("POST", "operations/") in plain
    assert ("POST", "tasks/") in plain
    for method, path in plain:
        problem(root.ask(method, path, {}, if_match='"seen"'), 400, "condition_refused")


def test_a_condition_reads_of_the_task_only_what_the_lock_left_out(root: ApiClient) -> None:
    counts = []
    for condition in ({}, {"if_match": "*"}):
        task = greet.enqueue("Ann")
        with CaptureQueriesContext(connection) as captured:
            assert root.act(f"tasks/{task.id}/cancel/", **condition).status_code == 200
        reads = [query for query in captured if query["sql"].startswith('SELECT "taskqueue_task"')]
        counts.append(len(reads))
    assert counts[1] <= counts[0] + 2  # `args` and `kwargs`, which the lock left out.


def test_a_delete_has_no_body_that_would_be_lost(root: ApiClient) -> None:
    deletes = [path for method, path, _ in ACTS if method == "DELETE"]
    assert deletes
    for path in deletes:
        problem(root.ask("DELETE", path, {"reason": "old"}), 400, "body_refused")
        assert root.ask("DELETE", path, {}).status_code == 404, "nothing is lost of nothing"


@override_settings(REST_FRAMEWORK={"NON_FIELD_ERRORS_KEY": "__all__"})
def test_pointers_are_the_same_whatever_the_project_calls_the_whole(root: ApiClient) -> None:
    told = problem(root.act("operations/", {"verb": "retry", "filter": []}), 422, "invalid")
    assert [each["pointer"] for each in told["errors"]] == ["/filter"]


@modify_settings(MIDDLEWARE={"append": "django.middleware.locale.LocaleMiddleware"})
def test_it_speaks_english_whatever_the_browser_does(root: ApiClient) -> None:
    answer = root.act(PAUSE, {"reason": 5, "untl": 1}, accept_language="zh-hans")
    assert answer.content.isascii()
    answer = root.act(PAUSE, {"reason": 5}, accept_language="zh-hans")
    assert problem(answer, 422, "invalid")["errors"][0]["detail"] == "Not a valid string."
    assert answer["Content-Language"] == "en"
    answer = root.ask("DELETE", "queues/", accept_language="zh-hans")
    assert problem(answer, 405, "method_not_allowed")["detail"] == 'Method "DELETE" not allowed.'
