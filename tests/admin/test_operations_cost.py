"""The cost of the confirmation before an operation, whatever the search and however few match."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from taskqueue.engine.operations import walking
from tests.admin.conftest import LogIn
from tests.engine.operation_steps import fail, fill
from tests.engine.steps import claim

pytestmark = pytest.mark.django_db

START = "/admin/taskqueue/operation/start/"
ALL = ("view_task", "view_task_arguments", "view_operation", "operate", "stop", "purge")
MOST_QUERIES = 16
SEARCHES = (
    "", "status:failed", "status:ready,running", "args.user.id:42", 'error:"nowhere to be found"',
    "name:nowhere", "nothing like it", "key:nobody", "worker:w1 status:running",
    "schedule:nightly", "priority:>=5 queue:mail", "after:2d before:1h",
)  # fmt: skip
VERBS = ("retry", "cancel", "stop", "run_now", "delete")


@pytest.mark.slow
@pytest.mark.parametrize("window", [7, 20_000])
def test_the_question_asks_the_database_few_questions(
    log_in_as: LogIn,
    monkeypatch: pytest.MonkeyPatch,
    django_assert_max_num_queries: Any,
    window: int,
) -> None:
    monkeypatch.setattr(walking, "WINDOW", window)
    fail(20)
    fill(20)
    claim(5)
    client: Client = log_in_as("staff", *ALL)
    for verb in VERBS:
        for text in SEARCHES:
            with django_assert_max_num_queries(MOST_QUERIES):
                response = client.get(START, {"verb": verb, "q": text})
            assert response.status_code == 200, (verb, text)
