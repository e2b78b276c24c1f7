"""Saved searches over REST."""

from __future__ import annotations

import pytest

from taskqueue.models import Audit, SavedSearch
from tests.api.conftest import ApiClient

pytestmark = pytest.mark.django_db
FAILED = {"name": "failed mail", "query": "status:failed queue:mail"}


def test_a_search_is_saved_found_changed_and_deleted(root: ApiClient) -> None:
    made = root.act("searches/", FAILED)
    assert made.status_code == 201, made.content
    told = made.json()
    assert (told["name"], told["is_own"], told["may_change"]) == ("failed mail", True, True)
    assert root.look("searches/").json()["results"] == [told]
    address = f"searches/{told['id']}/"
    changed = root.ask("PATCH", address, {"is_shared": True, "reason": "for all"})
    assert changed.json()["is_shared"] is True
    assert Audit.objects.get(noun="search").reason == "for all"
    assert root.ask("DELETE", address).status_code == 204
    assert root.look(address).status_code == 404


def test_a_name_stands_once_for_an_owner(root: ApiClient) -> None:
    root.act("searches/", FAILED)
    again = root.act("searches/", FAILED)
    assert (again.status_code, again.json()["code"]) == (409, "search_exists")


@pytest.mark.parametrize("query", ["stutus:failed", 'name:"'])
def test_an_invalid_query_is_not_stored(root: ApiClient, query: str) -> None:
    answer = root.act("searches/", {"name": "wrong", "query": query})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_filter")
    assert not SavedSearch.objects.exists()


def test_searches_of_others_that_are_not_shared_do_not_exist(root: ApiClient) -> None:
    other = SavedSearch.objects.create(name="x", query="status:failed", owner="auth.user:0")
    assert root.look("searches/").json()["results"] == []
    for method in ("PATCH", "DELETE"):
        answer = root.ask(
            method, f"searches/{other.pk}/", {"name": "y"} if method == "PATCH" else None
        )
        assert answer.status_code == 404, method


def test_searches_that_others_share_can_be_taken_from_the_list(root: ApiClient) -> None:
    other = SavedSearch.objects.create(
        name="x", query="status:failed", owner="auth.user:0", is_shared=True
    )
    address = f"searches/{other.pk}/"
    answer = root.ask("PATCH", address, {"is_shared": False})
    assert (answer.status_code, answer.json()["is_shared"]) == (200, False)
    assert root.look(address).status_code == 404
    other.refresh_from_db()
    assert not other.is_shared


@pytest.mark.parametrize("name", ["two\nlines", "turned \u202e round"])
def test_a_name_has_printable_characters_only(root: ApiClient, name: str) -> None:
    answer = root.act("searches/", {**FAILED, "name": name})
    assert answer.status_code == 422
    assert not SavedSearch.objects.exists()
