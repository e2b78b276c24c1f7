"""Saved searches above the list of tasks: own ones, and those that are shared."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from taskqueue.access.users import identity_of
from taskqueue.engine import search_owners
from taskqueue.engine.control.searches import MOST_SEARCHES
from taskqueue.engine.search_owners import SearchPruning
from taskqueue.models import Audit, SavedSearch
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL
from tests.admin.test_admin import read, url

pytestmark = pytest.mark.django_db
SAVE = "/admin/taskqueue/task/searches/save/"
CARD = "4111111111111111"
"""Longer than what chance puts into an address or a token."""


def saved(name: str, query: str, **values: Any) -> SavedSearch:
    """A search of somebody else."""
    return SavedSearch.objects.create(
        **{"name": name, "query": query, "owner": "auth.user:0", "owner_name": "bob", **values}
    )


def change(client: Client, search: SavedSearch, **given: str) -> Any:
    address = reverse("admin:taskqueue_task_search", args=[search.pk])
    return client.post(address, given)


def listed(client: Client, query: str = "") -> str:
    return read(client, url("task", "changelist") + (f"?q={query}" if query else ""))


def test_one_click_saves_the_search_and_a_link_opens_it(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "view_task")
    assert "Save this search" not in listed(client)
    assert "Save this search" in listed(client, "status:failed")
    back = url("task", "changelist") + "?q=status%3Afailed"
    assert client.post(SAVE, {"query": " status:failed", "next": back}).url == back
    row = SavedSearch.objects.get()
    assert (row.name, row.query, row.is_shared) == ("status:failed", "status:failed", False)
    page = read(client, back)
    assert 'href="?q=status%3Afailed" aria-current="true"' in page
    assert "Save this search" not in page
    assert "Change saved search…" in page
    assert not Audit.objects.exists()


def test_own_searches_are_renamed_and_deleted_by_their_owner(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "view_task")
    client.post(SAVE, {"query": "status:failed", "name": "broken"})
    row = SavedSearch.objects.get()
    change(client, row, verb="edit", name="broken today")
    assert "broken today" in listed(client)
    assert change(client, row, verb="edit", name="broken", is_shared="on").status_code == 403
    change(client, row, verb="delete")
    assert not SavedSearch.objects.exists()
    assert not Audit.objects.exists()


def test_searches_of_others_are_seen_only_where_they_are_shared(log_in_as: LogIn) -> None:
    hidden = saved("mine alone", "status:failed")
    shared = saved("for all", "status:cancelled", is_shared=True)
    client = log_in_as("staff", "view_task")
    page = listed(client)
    assert "for all" in page
    assert "mine alone" not in page
    assert "shared by bob" in page
    assert "Change saved search…" not in listed(client, "status:cancelled")
    for verb in ("edit", "delete"):
        assert change(client, shared, verb=verb, name="x").status_code == 403
        change(client, hidden, verb=verb, name="x")
    assert set(SavedSearch.objects.values_list("name", flat=True)) == {"mine alone", "for all"}


def test_the_permission_allows_to_share_and_to_change_what_others_share(log_in_as: LogIn) -> None:
    shared = saved("for all", "status:cancelled", is_shared=True)
    hidden = saved("mine alone", "status:failed")
    client = log_in_as("staff", "view_task", "manage_searches")
    client.post(SAVE, {"query": "status:ready"})
    own = SavedSearch.objects.get(query="status:ready")
    change(client, own, verb="edit", name="ready", is_shared="on")
    change(client, shared, verb="edit", name="cancelled", is_shared="on")
    change(client, shared, verb="delete")
    change(client, hidden, verb="delete")
    assert set(SavedSearch.objects.values_list("name", flat=True)) == {"ready", "mine alone"}
    acts = Audit.objects.filter(noun="search").order_by("id")
    assert [(each.verb, each.subject, each.detail) for each in acts] == [
        ("edit", f"search {own.pk}", "name: ready, shared"),
        ("edit", "for all", "name: cancelled"),
        ("delete", "cancelled", ""),
    ]


def test_owners_who_lost_the_permission_can_stop_sharing_and_change_nothing_else(
    log_in_as: LogIn,
) -> None:
    client = log_in_as("staff", "view_task")
    client.post(SAVE, {"query": "status:failed", "name": "broken"})
    SavedSearch.objects.update(is_shared=True)
    row = SavedSearch.objects.get()
    assert change(client, row, verb="edit", name="other", is_shared="on").status_code == 403
    change(client, row, verb="edit", name="broken")
    row.refresh_from_db()
    assert (row.name, row.is_shared) == ("broken", False)


@pytest.mark.parametrize(
    ("permissions", "names"),
    [
        (["view_task"], set()),
        (["view_task", "view_arguments"], {"by an argument"}),
        (["view_task", "view_lease"], {"by a worker"}),
    ],
)
def test_a_shared_search_tells_nothing_that_its_reader_may_not_view(
    log_in_as: LogIn, permissions: list[str], names: set[str]
) -> None:
    saved("by an argument", "args.token:42", is_shared=True)
    saved("by a worker", "worker:web-1", is_shared=True)
    page = listed(log_in_as("staff", *permissions))
    assert {name for name in ("by an argument", "by a worker") if name in page} == names


def test_the_audit_does_not_tell_the_text_of_a_search_that_is_its_name(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "view_task", "view_arguments", "manage_searches")
    client.post(SAVE, {"query": "args.token:hidden-words"})
    row = SavedSearch.objects.get()
    change(client, row, verb="edit", name=row.name, is_shared="on")
    change(client, row, verb="delete")
    assert list(Audit.objects.values_list("subject", flat=True)) == [f"search {row.pk}"] * 2
    assert "hidden-words" not in "".join(Audit.objects.values_list("detail", flat=True))


@pytest.mark.parametrize("query", ["", "stutus:failed", 'name:"', "a\0b", "x" * 2001])
def test_an_invalid_search_is_not_saved(log_in_as: LogIn, query: str) -> None:
    client = log_in_as("staff", "view_task")
    assert client.post(SAVE, {"query": query}).status_code == 302
    assert not SavedSearch.objects.exists()


def test_names_are_unique_for_an_owner_and_their_number_is_bounded(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "view_task")
    client.post(SAVE, {"query": "status:failed", "name": "broken"})
    client.post(SAVE, {"query": "status:ready", "name": "broken"})
    assert "already" in listed(client)
    assert SavedSearch.objects.get().query == "status:failed"
    owner = SavedSearch.objects.get().owner
    for number in range(MOST_SEARCHES):
        saved(f"{number}", "status:ready", owner=owner)
    client.post(SAVE, {"query": "status:cancelled"})
    assert f"At most {MOST_SEARCHES} searches" in listed(client)
    assert not SavedSearch.objects.filter(query="status:cancelled").exists()


def test_names_and_owners_are_shown_as_text(log_in_as: LogIn) -> None:
    saved(EVIL, f'"{EVIL}"', owner_name=EVIL, is_shared=True)
    page = listed(log_in_as("superuser"))
    assert EVIL not in page
    assert "gotcha" in page


def test_the_owner_is_the_user_and_not_the_name(admin_user: Any, client: Client) -> None:
    client.force_login(admin_user)
    client.post(SAVE, {"query": "status:failed"})
    assert SavedSearch.objects.get().owner == identity_of(admin_user)


def test_who_may_not_view_its_values_cannot_act_on_a_shared_search(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "view_task", "manage_searches")
    search = saved(f"args.card:{CARD}", f"args.card:{CARD}", is_shared=True)
    for given in ({"verb": "delete"}, {"verb": "edit", "name": "mine", "is_shared": "on"}):
        page = client.get(change(client, search, **given).url).text
        assert "There is no such saved search any more." in page
        assert CARD not in page
    search.refresh_from_db()
    assert search.name == f"args.card:{CARD}"


def test_private_searches_go_with_their_user_and_shared_ones_stay(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "view_task")
    client.post(SAVE, {"query": "status:failed", "name": "broken"})
    user = get_user_model().objects.get(pk=client.session["_auth_user_id"])
    saved("others", "status:ready", owner="other.user:1")
    saved("shared", "status:ready", owner=identity_of(user), is_shared=True)
    pruning = SearchPruning()
    assert not pruning.step(connection)
    assert SavedSearch.objects.count() == 3
    with CaptureQueriesContext(connection) as asked:
        user.delete()
    assert not any("savedsearch" in each["sql"] for each in asked)
    assert not pruning.step(connection)
    assert sorted(SavedSearch.objects.values_list("name", flat=True)) == ["others", "shared"]


def test_owners_are_looked_up_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_owners, "BATCH", 2)
    there = get_user_model().objects.create(username="there")
    for number in range(3):
        saved("gone", "status:ready", owner=f"auth.user:{there.pk + 1 + number}")
    saved("kept", "status:ready", owner=identity_of(there))
    saved("odd", "status:ready", owner="auth.user:no number")
    pruning = SearchPruning()
    assert [pruning.step(connection) for _ in range(3)] == [True, True, False]
    assert sorted(SavedSearch.objects.values_list("name", flat=True)) == ["kept", "odd"]
