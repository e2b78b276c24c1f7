"""Users who may only view post all kinds of forms, and nothing changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.db.transaction import atomic, set_rollback

from taskqueue.access.roles import OPERATOR, VIEWER
from taskqueue.core.states import PENDING
from taskqueue.engine.operations.asking import which_of
from taskqueue.models import Operation
from tests.admin.everything import Everything
from tests.admin.matrix.cells import act_address, filled_in, page_address
from tests.admin.matrix.kinds import Page
from tests.admin.matrix.roles import IS_FULL, Clients
from tests.admin.matrix.stored import Stored, has_changed
from tests.admin.matrix.table import PAGES

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
LOOKS_AT_ALL = VIEWER.permissions | {"view_arguments"}
# Whoever may view tasks saves searches of their own.
ROUTES = sorted(PAGES.keys() - {"task/searches/save/"})
VERBS = sorted({
    str(act.body["verb"]) for page in PAGES.values() for act in page.acts if "verb" in act.body
})  # fmt: skip
ACTIONS = sorted({
    "delete_selected",
    *(
        getattr(action, "__name__", action)
        for model_admin in admin.site._registry.values()
        if model_admin.opts.app_label == "taskqueue"
        for action in model_admin.actions or ()
    ),
})  # fmt: skip
HIDDEN = {
    "confirmed": "1", "post": "yes", "ids": "$failed", "q": "status:failed", "select_across": "1",
    "_selected_action": "$failed", "index": "0", "_save": "1", "_saveasnew": "1", "_popup": "1",
    "_continue": "1", "status": "ready", "seen": "", "is_staff": "1", "minutes": "5",
}  # fmt: skip
"""The bodies of the forms of users who may act."""


@pytest.fixture(scope="module")
def people(clients: Clients, made: Everything) -> Clients:
    """With who may see all and do nothing."""
    clients.admit(LOOKS_AT_ALL)
    clients.admit(OPERATOR.permissions - {"stop"})
    return clients


@pytest.mark.parametrize("route", ROUTES)
def test_who_may_only_look_changes_nothing_by_any_form(
    route: str, people: Clients, made: Everything, before: Stored
) -> None:
    page = PAGES[route]
    client = people.staff(LOOKS_AT_ALL)
    addresses = {act_address(route, act, made) for act in page.acts}
    if page.look is not None:
        addresses.add(page_address(route, page, made))
    for address in sorted(addresses):
        for body in _bodies(route, page):
            status = client.post(address, filled_in(body, made)).status_code
            assert status in (200, 302, 403, 404, 405), (address, body)
    assert not has_changed(before)


def _bodies(route: str, page: Page) -> Iterator[dict[str, Any]]:
    """All hidden fields, with each verb or action where there is a choice of them."""
    fields = {key: value for act in page.acts for key, value in act.body.items()}
    verbs = VERBS if page.acts or IS_FULL else VERBS[:1]
    has_actions = route in ("task/", "schedule/") or (IS_FULL and route.count("/") == 1)
    actions = ACTIONS if has_actions else ["delete_selected"]
    for verb in verbs:
        yield {**fields, **HIDDEN, "verb": verb}
    for action in actions:
        yield {**fields, **HIDDEN, "action": action}
        if route == "schedule/":
            chosen = {"_selected_action": "$schedule", "select_across": "0"}
            yield {**fields, **HIDDEN, **chosen, "action": action}


def test_to_cancel_many_leaves_out_what_runs_for_those_who_may_not_stop(
    people: Clients, made: Everything
) -> None:
    client = people.staff(OPERATOR.permissions - {"stop"})
    for chosen in ({"ids": "$running"}, {"q": "status:running"}, {"everything": "1"}):
        body = filled_in({"verb": "cancel", "confirmed": "1", **chosen}, made)
        with atomic():
            client.post("/admin/taskqueue/operation/start/", body)
            asked = Operation.objects.get(verb="cancel")
            statuses = which_of(asked).statuses
            assert statuses is not None
            assert set(statuses) <= set(PENDING), chosen
            set_rollback(True)
