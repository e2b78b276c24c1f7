"""How often somebody may ask."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from django.core.cache.backends.base import BaseCache
from django.test import override_settings

from tests.api.conftest import ApiClient
from tests.api.test_foundation import PAUSE, problem

pytestmark = pytest.mark.django_db


@override_settings(TASKQUEUE={"API_THROTTLE_RATES": {"read": "2/minute", "act": None}})
def test_too_frequent_requests_are_answered_with_a_wait_time(root: ApiClient, member: Any) -> None:
    assert [root.look("queues/").status_code for _ in range(2)] == [200, 200]
    answer = root.look("queues/")
    problem(answer, 429, "throttled")
    assert 1 <= int(answer["Retry-After"]) <= 60
    assert root.act(PAUSE).status_code == 200, "acts have a rate of their own"
    assert member("view_queue").look("queues/").status_code == 200, "so has everybody"


@override_settings(TASKQUEUE={"API_THROTTLE_RATES": {"read": "2/minute"}})
def test_who_is_refused_may_not_ask_without_end(member: Any) -> None:
    nobody = member()
    assert [nobody.look("queues/").status_code for _ in range(3)] == [403, 403, 429]


@override_settings(TASKQUEUE={"API_THROTTLE_RATES": {"anonymous": "3/minute"}})
def test_passwords_and_tokens_are_not_guessed_all_day(anonymous: ApiClient) -> None:
    basic = "Basic " + base64.b64encode(b"root:guess").decode()
    answers = [anonymous.look("queues/", authorization=basic).status_code for _ in range(2)]
    answers += [
        anonymous.look("metrics", authorization="Bearer guess").status_code for _ in range(2)
    ]
    assert answers == [401, 401, 401, 429]


@pytest.mark.parametrize(("proxies", "last"), [(None, 429), (0, 429), (1, 401)])
@override_settings(TASKQUEUE={"API_THROTTLE_RATES": {"anonymous": "2/minute"}})
def test_a_header_makes_nobody_another_unless_proxies_write_it(
    proxies: int | None, last: int, anonymous: ApiClient
) -> None:
    with override_settings(REST_FRAMEWORK={"NUM_PROXIES": proxies}):
        answers = [
            anonymous.look("queues/", x_forwarded_for=f"203.0.113.{number}").status_code
            for number in range(3)
        ]
    assert answers == [401, 401, last]


@override_settings(
    TASKQUEUE={"API_THROTTLE_RATES": {"read": "1/minute"}},
    CACHES={"default": {"BACKEND": "tests.api.test_limits.Away"}},
)
def test_without_the_cache_requests_are_answered_and_not_counted(
    root: ApiClient, caplog: pytest.LogCaptureFixture
) -> None:
    assert [root.look("queues/").status_code for _ in range(2)] == [200, 200]
    assert "requests are not throttled error=ConnectionError('no cache')" in caplog.text


class Away(BaseCache):
    """A cache whose server is down."""

    def __init__(self, location: str, parameters: dict[str, Any]) -> None:
        super().__init__(parameters)

    def get(self, *given: Any, **more: Any) -> Any:
        raise ConnectionError("no cache")

    def clear(self) -> None:
        pass


def test_behind_a_socket_without_addresses_nobody_breaks(anonymous: ApiClient) -> None:
    answer = anonymous.get("/api/v1/queues/", REMOTE_ADDR="")
    problem(answer, 401, "not_authenticated")
    answer = anonymous.get("/api/v1/queues/", REMOTE_ADDR=None)
    problem(answer, 401, "not_authenticated")
