"""Pauses of definitions and of everything over REST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from taskqueue.models import Audit, Pause
from tests.api.conftest import ApiClient
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
DEFINITION, EVERYTHING = "pauses/definitions/shop.export/", "pauses/everything/"


def test_a_definition_is_paused_listed_and_resumed(root: ApiClient) -> None:
    answer = root.act(f"{DEFINITION}pause/", {"until": 600, "reason": "a bug"})
    told = answer.json()
    assert (answer.status_code, told["definition"], told["is_paused"]) == (200, "shop.export", True)
    assert told["paused_until"] > told["paused_at"]
    assert root.look("pauses/").json()["results"] == [told]
    again = root.act(f"{DEFINITION}resume/", if_match=answer["ETag"])
    assert (again.status_code, again.json()["is_paused"]) == (200, False)
    assert root.act(f"{DEFINITION}resume/").status_code == 409
    assert root.act(f"{DEFINITION}pause/", if_match=answer["ETag"]).status_code == 412
    assert list(Audit.objects.order_by("id").values_list("noun", "verb")) == [
        ("definition", "pause"), ("definition", "resume")
    ]  # fmt: skip


@pytest.mark.parametrize("address", [DEFINITION, EVERYTHING])
def test_a_pause_is_looked_at_and_resumed_as_it_was_seen(address: str, root: ApiClient) -> None:
    before = root.look(address)
    assert (before.status_code, before.json()["is_paused"]) == (200, False)
    paused = root.act(f"{address}pause/", {"until": 600}, if_match=before["ETag"])
    seen = root.look(address)
    assert seen.json() == paused.json()
    assert root.act(f"{address}resume/", if_match=before["ETag"]).status_code == 412
    assert root.act(f"{address}resume/", if_match=seen["ETag"]).status_code == 200


def test_an_unknown_name_is_reported(root: ApiClient) -> None:
    told = root.act(f"pauses/definitions/{noop.name}p/pause/").json()
    assert told["is_paused"]
    assert told["hint"].endswith(f"Did you mean {noop.name!r}?")
    assert root.look("pauses/").json()["results"] == [told]
    assert root.act(f"pauses/definitions/{noop.name}/pause/").json()["hint"] == ""
    told = root.act("queues/defaul/pause/").json()
    assert told["is_paused"]
    assert told["hint"].endswith("Did you mean 'default'?")
    assert root.act("queues/default/pause/").json()["hint"] == ""


def test_everything_is_paused_and_resumed(root: ApiClient) -> None:
    answer = root.act(f"{EVERYTHING}pause/", {"reason": "an incident"})
    assert (answer.status_code, answer.json()["definition"]) == (200, None)
    assert Pause.objects.get().pause_reason == "an incident"
    assert root.act(f"{EVERYTHING}resume/").json()["is_paused"] is False
    assert root.act(f"{EVERYTHING}resume/").status_code == 409


@pytest.mark.parametrize("body", [{"until": "2020-01-01T00:00:00Z"}, {"until": "soon"}, {"to": 1}])
@pytest.mark.parametrize("address", [DEFINITION, EVERYTHING])
def test_a_pause_that_cannot_be_is_refused(
    address: str, body: dict[str, Any], root: ApiClient
) -> None:
    assert root.act(f"{address}pause/", body).status_code == 422
    assert root.act("pauses/definitions/two words/pause/").status_code == 422
    assert not Pause.objects.exists()


def test_the_refusal_of_a_time_names_both_forms(root: ApiClient) -> None:
    told = root.act(f"{EVERYTHING}pause/", {"until": "soon"}).json()
    assert "or a number of seconds from now" in str(told)


def test_who_may_not_control_queues_pauses_nothing(member: Callable[..., ApiClient]) -> None:
    client = member("view_queue", "operate", "stop")
    assert client.act(f"{EVERYTHING}pause/").status_code == 403
    assert client.act(f"{DEFINITION}pause/").status_code == 403
    assert client.look("pauses/").status_code == 200
    assert member("view_task").look("pauses/").status_code == 403
    for address in (DEFINITION, EVERYTHING):
        assert client.look(address).status_code == 200
        assert member("view_task").look(address).status_code == 403
