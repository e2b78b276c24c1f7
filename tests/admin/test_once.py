"""A button that creates a task creates one however often it is pressed, even simultaneously."""

from __future__ import annotations

import re
from threading import Barrier
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from taskqueue import control
from taskqueue.core.uuid7 import uuid7
from taskqueue.models import Audit, Task
from taskqueue.results.by_hand import enqueue_by_hand
from tests.admin.conftest import LogIn
from tests.admin.schedule_rows import messages_of
from tests.admin.test_admin import read, url
from tests.admin.test_enqueue_form import form_url
from tests.admin.test_task_acts import state
from tests.engine.steps import run_at_once
from tests.sample.tasks import add, noop, unique

pytestmark = pytest.mark.django_db
TOLD = "was already done"
KINDS = ("enqueue", "unique", "retry", "duplicate")


def asked(kind: str) -> tuple[str, str, dict[str, str]]:
    """A page that makes a task, where it is posted to, and with what."""
    if kind in ("enqueue", "unique"):
        definition, given = (
            (add, {"arg_a": "1"}) if kind == "enqueue" else (unique, {"arg_key": "k"})
        )
        page = form_url(definition.name)
        return page, page, {**given, "options": "{}"}
    old = add.enqueue(1)
    old.cancel()
    if kind == "retry":
        page = url("task", "edit", old.id, "retry_with")
        return page, page, {"arg_a": "1", "arg_b": ""}
    return url("task", "change", old.id), url("task", "act", old.id), {"verb": "duplicate"}


def once_of(client: Client, page: str) -> str:
    """The hidden field of a page."""
    found = re.search(r'name="once" value="([^"]+)"', read(client, page))
    assert found is not None
    return found[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_press_leads_to_what_the_first_one_created(kind: str, log_in_as: LogIn) -> None:
    page, address, given = asked(kind)
    client = log_in_as("superuser")
    given["once"] = once_of(client, page)
    assert once_of(client, page) != given["once"]
    old = set(Task.objects.values_list("id", flat=True))
    answers = [client.post(address, given)["Location"] for _ in range(2)]
    new = Task.objects.exclude(id__in=old).get()
    assert answers == [url("task", "change", new.id)] * 2
    before = state()
    assert TOLD in messages_of(client, address, given)
    assert state() == before
    client.post(address, {**given, "once": once_of(client, page)})
    assert Task.objects.filter(name=new.name).count() == (
        1 if kind == "unique" else len(before[0]) + 1
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", KINDS)
def test_two_presses_at_the_same_time_make_one_task(kind: str, log_in_as: LogIn) -> None:
    page, address, given = asked(kind)
    client = log_in_as("superuser")
    given["once"] = once_of(client, page)
    old, both, answers = set(Task.objects.values_list("id", flat=True)), Barrier(2), list[str]()
    audits = Audit.objects.count()

    def press() -> None:
        own = Client()
        own.cookies = client.cookies
        both.wait(60)
        answers.append(own.post(address, given)["Location"])

    run_at_once([press, press])
    new = Task.objects.exclude(id__in=old).get()
    assert set(answers) == {url("task", "change", new.id)}
    assert Audit.objects.count() == audits + (2 if kind == "duplicate" else 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", ["enqueue", "retry", "duplicate"])
def test_of_many_calls_with_one_id_each_but_one_is_refused(verb: str) -> None:
    from taskqueue.exceptions import EnqueuedBefore

    old = add.enqueue(1)
    old.cancel()
    new_id, together, refused = uuid7(), Barrier(4), list[Any]()
    calls: dict[str, Any] = {
        "enqueue": lambda: enqueue_by_hand(add, [2], {}, new_id=new_id),
        "retry": lambda: control.retry_with(old.id, args=[2], new_id=new_id),
        "duplicate": lambda: control.duplicate(old.id, new_id=new_id),
    }

    def call() -> None:
        together.wait(60)
        try:
            calls[verb]()
        except EnqueuedBefore as error:
            refused.append((error.task_id, error.name))

    run_at_once([call] * 4)
    assert refused == [(new_id, add.name)] * 3
    assert set(Task.objects.values_list("id", flat=True)) == {old.id, new_id}


@pytest.mark.parametrize("kind", KINDS)
def test_an_id_that_no_page_gave_out_lately_is_refused(kind: str, log_in_as: LogIn) -> None:
    _, address, given = asked(kind)
    client, now = log_in_as("superuser"), uuid7().int
    old, ahead = (UUID(int=now + (seconds * 1000 << 80)) for seconds in (-90_000, 3600))
    before = state()
    for wrong in ("x", str(uuid4()), str(old), str(ahead), "0" * 32, "\x00"):
        answer = client.post(address, {**given, "once": wrong}, follow=True)
        assert "This form had expired" in answer.content.decode(), wrong
    assert state() == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_form_of_one_task_is_refused_at_the_address_of_another(
    kind: str, log_in_as: LogIn
) -> None:
    page, address, given = asked(kind)
    client, other = log_in_as("superuser"), noop.enqueue()
    other.cancel()
    given["once"] = once_of(client, page)
    client.post(address, given)
    place = form_url(noop.name) if page == address and kind != "retry" else ""
    if not place:
        parts = ("edit", other.id, "retry_with") if kind == "retry" else ("act", other.id)
        place = url("task", *parts)
    before = state()
    answer = client.post(place, given, follow=True)
    assert "was for another task" in answer.content.decode()
    assert state() == before


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("enqueue", {"arg_a": "2"}),
        ("enqueue", {"reason": "again"}),
        ("unique", {"arg_key": "l"}),
        ("retry", {"arg_b": "3"}),
        ("duplicate", {"reason": "again"}),
    ],
)
def test_a_page_that_is_sent_again_with_other_values_acts_again(
    kind: str, changed: dict[str, str], log_in_as: LogIn
) -> None:
    page, address, given = asked(kind)
    client = log_in_as("superuser")
    given["once"] = once_of(client, page)
    count = Task.objects.count()
    client.post(address, given)
    assert Task.objects.count() == count + 1
    told = messages_of(client, address, {**given, **changed})
    assert TOLD not in told
    assert Task.objects.count() == count + 2
    assert TOLD in messages_of(client, address, {**given, **changed})
    assert Task.objects.count() == count + 2
