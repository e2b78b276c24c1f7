"""The enqueue form: made from a signature, strict about its input, and silent about secrets."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from enum import Enum
from typing import Any, Literal

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from taskqueue import Concurrency, Every, Fixed, Rate, schedules, task
from taskqueue.declarations.definition import registry
from taskqueue.models import Audit, Task
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL, SECRET
from tests.admin.test_admin import read, url
from tests.admin.test_task_acts import state
from tests.sample.tasks import add, echo, log_in, mark, noop, unique

pytestmark = pytest.mark.django_db


ONE = {"a": 1}


class Colour(Enum):
    """Of the tests."""

    RED = "r"
    BLUE = "b"


def form_url(name: str) -> str:
    """The address of a definition's form."""
    return f"{url('task', 'add')}?name={name}"


def send(client: Client, definition: Any, **given: str) -> Any:
    """Post its form."""
    return client.post(form_url(definition.name), given)


@contextmanager
def declared(body: Any, **options: Any) -> Iterator[Any]:
    """A definition for the time of a test."""
    found = task(name=f"tests.{body.__name__}", **options)(body)
    try:
        yield found
    finally:
        del registry._definitions[found.name]


def every_kind(
    text: str,
    number: int,
    ratio: float,
    is_loud: bool,
    colour: Colour,
    size: Literal["s", "m", 3],
    items: list[int],
    table: dict[str, Any],
    anything: Any,
    untold,  # type: ignore[no-untyped-def]
    maybe: int | None = None,
    level: int = 3,
    note: str = "none given",
    is_dry: bool = True,
    inferred=1.5,
) -> None:
    """One parameter of each kind."""


KINDS = {
    "arg_text": " a\u00e9 ", "arg_number": "-5", "arg_ratio": "1.5", "arg_is_loud": "on",
    "arg_colour": '"b"', "arg_size": "3", "arg_items": "[1, 2]", "arg_table": '{"a": [1]}',
    "arg_anything": '"x"', "arg_untold": "null",
}  # fmt: skip
GIVEN = {
    "text": " a\u00e9 ", "number": -5, "ratio": 1.5, "is_loud": True, "colour": "b", "size": 3,
    "items": [1, 2], "table": {"a": [1]}, "anything": "x", "untold": None,
}  # fmt: skip


def test_each_kind_of_parameter_has_its_field(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    with declared(every_kind) as definition:
        page = read(client, form_url(definition.name))
        for part in (
            'type="checkbox" name="arg_is_loud"', '<select name="arg_colour"',
            'type="number" name="arg_number"', '<textarea name="arg_items"',
            'value="none given"', 'name="arg_level" value="3"', "Left out: 3.", ">RED<",
        ):  # fmt: skip
            assert part in page, part
        defaults = {
            "arg_level": "3", "arg_note": "none given", "arg_is_dry": "on", "arg_inferred": "",
        }  # fmt: skip
        answer = send(client, definition, **KINDS, **defaults)
        made = Task.objects.get()
        assert answer["Location"] == url("task", "change", made.id)
        assert (made.args, made.kwargs) == ([], GIVEN)
        send(
            client, definition, **KINDS, arg_level="", arg_note="", arg_maybe="7", arg_inferred="2"
        )
        made = Task.objects.latest("id")
        assert made.kwargs == {
            **GIVEN, "note": "", "is_dry": False, "maybe": 7, "inferred": 2.0,
        }  # fmt: skip


BAD: list[dict[str, str]] = [
    {"arg_number": ""}, {"arg_number": "1.5"}, {"arg_number": "x"}, {"arg_number": str(2**63)},
    {"arg_number": "9" * 5000}, {"arg_ratio": "nan"}, {"arg_ratio": "inf"},
    {"arg_colour": '"g"'}, {"arg_colour": ""}, {"arg_size": EVIL}, {"arg_items": "{}"},
    {"arg_items": "[1"}, {"arg_items": "[NaN]"}, {"arg_table": '{"a": 1, "a": 2}'},
    {"arg_anything": "[" * 100_000}, {"arg_anything": "[" * 40 + "]" * 40},
    {"arg_anything": str(2**64)}, {"arg_text": "\x00"}, {"arg_text": "x" * 70_000},
    {"arg_untold": ""}, {"queue_name": "a b"}, {"queue_name": EVIL}, {"priority": "101"},
    {"priority": "x"}, {"run_after": "soon"}, {"run_after": "in 999999999 weeks"},
    {"run_after": "9999-12-31 23:59-10:00"}, {"unique_key": "x" * 256}, {"unique_key": "\x00"},
    {"max_attempts": "0"}, {"timeout_0": "-1", "timeout_1": "1"}, {"options": "[]"},
    {"options": '{"nonsense": 1}'}, {"options": '{"sensitive": []}'},
    {"options": '{"workers": 0}'}, {"options": '{"backoff": "x"}'},
    {"options": '{"worker_names": [[1]]}'}, {"options": '{"metadata": []}'},
    {"options": '{"priority": 1}', "priority": "2"},
    {"options": '{"broadcast": true, "workers": 3}'}, {"options": '{"deadline": "x"}'},
]  # fmt: skip


@pytest.mark.slow
def test_an_invalid_argument_is_reported_and_writes_nothing(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    before = state()
    with declared(every_kind) as definition:
        for given in BAD:
            answer = send(client, definition, **{**KINDS, **given})
            assert answer.status_code == 200, given
            assert "errorlist" in answer.content.decode(), given
            assert EVIL not in answer.content.decode(), given
    assert state() == before


def test_options_go_to_the_task(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    send(
        client, add, arg_a="1", arg_b="1", queue_name="mail", priority="-3", unique_key="k",
        run_after="in 5 minutes", max_attempts="4", timeout_0="2", timeout_1="60",
        options='{"retention": 60, "metadata": {"a": 1}}', reason="a test",
    )  # fmt: skip
    made = Task.objects.get()
    assert (made.queue_name, made.priority, made.unique_key) == ("mail", -3, "k")
    assert (made.status, made.max_attempts, made.options["timeout"]) == ("scheduled", 4, 120)
    assert (made.retention, made.metadata) == (timedelta(seconds=60), {"a": 1})
    assert made.run_after > timezone.now() + timedelta(minutes=4)
    line = Audit.objects.get()
    assert (line.verb, line.actor, line.reason) == ("enqueue", "user", "a test")
    assert LogEntry.objects.get().object_id == str(made.id)


def test_more_arguments_than_there_are_names_for(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    send(client, echo, arg_args='[1, "a"]', arg_kwargs='{"b": null}')
    assert (Task.objects.get().args, Task.objects.get().kwargs) == ([1, "a"], {"b": None})

    def placed(a: int, /, b: int = 2, *rest: int, c: int = 3) -> None:
        """By their place."""

    with declared(placed) as definition:
        send(client, definition, arg_a="1", arg_b="", arg_rest="[5]")
        assert Task.objects.latest("id").args == [1, 2, 5]
        send(client, definition, arg_a="1", arg_b="4", arg_rest="[5, 6]", arg_c="3")
        assert Task.objects.latest("id").args == [1, 4, 5, 6]
        send(client, definition, arg_a="1", arg_b="2", arg_rest="", arg_c="4")
        made = Task.objects.latest("id")
        assert (made.args, made.kwargs) == ([1], {"c": 4})


def test_an_empty_argument_before_positional_ones_takes_its_default(log_in_as: LogIn) -> None:
    def placed(
        g: list[int] | None = None, note: str | None = None, colour: Colour = Colour.BLUE,
        *rest: int,
    ) -> None:  # fmt: skip
        """By their place."""

    def odd(moment: Any = timedelta(1), *rest: int) -> None:
        """Has a default that JSON does not hold."""

    client = log_in_as("superuser")
    with declared(placed) as definition:
        send(client, definition, arg_g="", arg_note="", arg_colour="", arg_rest="[1, 2]")
        assert Task.objects.latest("id").args == [None, None, "b", 1, 2]
        send(client, definition, arg_g="", arg_note="", arg_colour="", arg_rest="")
        assert Task.objects.latest("id").args == []
    with declared(odd) as definition:
        before = state()
        told = send(client, definition, arg_moment="", arg_rest="[1]").content.decode()
        assert "Fill in this one too" in told
        assert state() == before


def test_null_can_be_written_for_what_may_be_none(log_in_as: LogIn) -> None:
    def nullable(
        text: str | None, word: str | None = "x", number: int | None = 5, ratio: float | None = 1.5,
        is_on: bool | None = True, items: Sequence[int] | None = (1,),
        table: Mapping[str, int] | None = ONE,
        size: Literal["s", "m"] | None = "m", plain: str = "y", quiet: str | None = None,
    ) -> None:  # fmt: skip
        """Each may be None, but for the last but one."""

    client = log_in_as("superuser")
    with declared(nullable) as definition:
        page = read(client, form_url(definition.name))
        boxes = {name for name in inspect.signature(nullable).parameters if f"null_{name}" in page}
        assert boxes == {"text", "word", "number", "ratio"}
        nulls = {f"null_{name}": "on" for name in boxes}
        written = {f"arg_{name}": "null" for name in ("is_on", "items", "table", "size")}
        send(client, definition, **nulls, **written, arg_plain="y", arg_word="ignored")
        names = {*boxes, "is_on", "items", "table", "size"}
        assert Task.objects.latest("id").kwargs == dict.fromkeys(names)
        send(client, definition, arg_text="", arg_word="x", arg_number="", arg_plain="y")
        assert Task.objects.latest("id").kwargs == {"text": ""}


# Secrets


def test_a_secret_is_typed_unseen_and_never_given_back(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    page = read(client, form_url(log_in.name))
    assert 'type="password" name="arg_password"' in page
    answer = send(client, log_in, arg_user="bob", arg_password=SECRET, priority="x")
    assert answer.status_code == 200
    assert SECRET not in answer.content.decode()
    assert 'value="bob"' in answer.content.decode()
    answer = send(client, log_in, arg_user="bob", arg_password=SECRET)
    assert Task.objects.get().kwargs == {"user": "bob", "password": SECRET}
    assert SECRET not in read(client, answer["Location"])
    assert not Audit.objects.filter(detail__contains=SECRET).exists()
    before = state()
    assert send(client, log_in, arg_user="bob").status_code == 200
    assert state() == before


def test_secrets_of_other_kinds_are_as_silent(log_in_as: LogIn) -> None:
    def keep(
        pin: int = 471_147_114_711, kind: Literal["gold", "iron"] = "gold",
        box: dict[str, Any] | None = None, **rest: Any,
    ) -> None:  # fmt: skip
        """Has many."""

    client = log_in_as("superuser")
    with declared(keep, sensitive=["pin", "kind", "box", "token"]) as definition:
        page = read(client, form_url(definition.name))
        assert "471147114711" not in page
        assert "Left out: &#x27;gold" not in page
        wrong = {"arg_pin": SECRET, "arg_kind": SECRET, "arg_box": f'"{SECRET}"'}
        for given in (wrong, {"arg_rest": f'{{"token": "{SECRET}"}}'}):
            answer = send(client, definition, **given)
            assert "errorlist" in answer.content.decode()
            assert SECRET not in answer.content.decode()
        assert not Task.objects.exists()
        send(client, definition, arg_pin="12", arg_kind='"iron"', arg_box='{"a": 1}',
             arg_token=SECRET, arg_rest='{"b": 1}')  # fmt: skip
        made = Task.objects.get()
        assert made.kwargs == {
            "pin": 12, "kind": "iron", "box": {"a": 1}, "token": SECRET, "b": 1,
        }  # fmt: skip
        send(client, definition)
        assert Task.objects.latest("id").kwargs == {}


def refuse(word: str) -> Any:
    raise KeyError(word)


@pytest.mark.parametrize(
    "options",
    [
        {"unique_key": refuse},
        {"concurrency": Concurrency(1, key=refuse)},
        {"rate": Rate("5/m"), "cost": refuse},
    ],
)
def test_the_error_of_an_options_callable_shows_no_argument(options: Any, log_in_as: LogIn) -> None:
    def held(word: str) -> None:
        """Has a key."""

    client = log_in_as("superuser")
    with declared(held, sensitive=["word"], **options) as definition:
        answer = send(client, definition, arg_word=SECRET)
    assert "KeyError" in answer.content.decode()
    assert SECRET not in answer.content.decode()
    assert not Task.objects.exists()


# Who, and what


@pytest.mark.parametrize(
    ("permissions", "status"),
    [(["enqueue"], 200), (["view_task"], 403), (["view_task", "operate", "stop", "purge"], 403)],
)
def test_it_is_for_those_who_may_enqueue(
    permissions: list[str], status: int, log_in_as: LogIn
) -> None:
    client = log_in_as("staff", *permissions)
    for address in (url("task", "add"), form_url(noop.name)):
        assert client.get(address).status_code == status
    answer = send(client, noop)
    assert answer.status_code == (302 if status == 200 else status)
    assert Task.objects.exists() == (status == 200)


def test_who_may_not_view_tasks_is_led_to_the_form_again(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "enqueue")
    answer = client.post(form_url(noop.name), {}, follow=True)
    assert answer.status_code == 200
    assert "Enqueued." in answer.content.decode()


def test_a_get_or_a_form_without_the_token_enqueues_nothing(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    before = state()
    read(client, form_url(add.name) + "&arg_a=1&_save=1")
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    assert send(strict, add, arg_a="1").status_code == 403
    assert client.put(form_url(add.name)).status_code == 405
    assert state() == before


def test_definitions_are_chosen_among_all_that_are_registered(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    page = read(client, url("task", "add"))
    for definition in (add, log_in, echo):
        assert form_url(definition.name).partition("?")[2] in page
    assert "A sum." in page
    told = read(client, form_url("tests.sample.tasks.ad"))
    assert "Did you mean" in told
    assert EVIL not in read(client, form_url(EVIL))
    assert client.post(form_url("os.system"), {}).status_code == 200
    assert not Task.objects.exists()


def test_to_show_a_form_runs_no_body(log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []
    monkeypatch.setattr(type(noop), "__call__", lambda self, *args: ran.append(self))
    client = log_in_as("superuser")
    for definition in (noop, echo, mark):
        read(client, form_url(definition.name))
        send(client, definition, priority="x")
    assert ran == []


def test_the_holder_of_a_unique_key_is_what_one_is_led_to(log_in_as: LogIn) -> None:
    holder, client = unique.enqueue("a"), log_in_as("superuser")
    answer = client.post(form_url(unique.name), {"arg_key": "a"}, follow=True)
    assert answer.redirect_chain[-1][0] == url("task", "change", holder.id)
    assert "Nothing was enqueued" in answer.content.decode()
    assert Task.objects.count() == 1
    assert not Audit.objects.exists()
    told = send(client, unique, arg_key="a", options='{"on_duplicate": "raise"}')
    assert "holds the unique key" in told.content.decode()


def test_a_key_made_of_the_arguments_stands_among_the_further_options(log_in_as: LogIn) -> None:
    client, options = log_in_as("superuser"), '{"unique_key": ["a"], "unique_scope": "sums"}'
    for second in ("1", "2"):
        send(client, add, arg_a="5", arg_b=second, options=options)
    made = Task.objects.get()
    assert (made.kwargs["a"], made.unique_scope) == (5, "sums")
    page = read(client, url("task", "change", made.id))
    assert "sums" in page
    assert str(made.unique_key) in page
    refused = send(client, add, arg_a="5", options='{"unique_key": ["c"]}').content.decode()
    assert "which the task does not have" in refused


def test_docstrings_and_defaults_are_escaped(log_in_as: LogIn) -> None:
    def odd(word: str = EVIL, other: Any = (EVIL,)) -> None:
        """Odd."""

    odd.__doc__ = EVIL
    client = log_in_as("superuser")
    with declared(odd) as definition:
        for address in (form_url(definition.name), url("task", "add")):
            page = read(client, address)
            assert EVIL not in page
            assert "gotcha" in page


def test_options_are_given_by_fields(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    send(
        client, noop, backoff="fixed(60)", retry_for="ConnectionError, TimeoutError",
        max_crashes="2", expires_after_0="5", expires_after_1="60", worker_names="w1, w2",
        metadata='{"a": 1}', unique_key="k", unique_for="10m",
    )  # fmt: skip
    made = Task.objects.get()
    assert made.options["backoff"] == Fixed(60).snapshot()
    assert made.options["retry_for"] == ["builtins.ConnectionError", "builtins.TimeoutError"]
    assert (made.max_crashes, made.worker_names, made.metadata) == (2, ["w1", "w2"], {"a": 1})
    assert made.expires_at - made.enqueued_at == timedelta(minutes=5)
    for wrong in ({"backoff": "never(1)"}, {"unique_for": "soon"}, {"restart": "some"}):
        assert send(client, noop, **wrong).context["form"].errors.keys() == wrong.keys()
    assert Task.objects.count() == 1


def test_the_form_begins_with_the_arguments_of_a_task_or_a_schedule(log_in_as: LogIn) -> None:
    with declared(every_kind) as definition:
        given = GIVEN | {"level": 7, "note": "b", "maybe": None}
        made = definition.enqueue(**given)
        client = log_in_as("superuser")
        form = client.get(f"{form_url(definition.name)}&task={made.id}").context["form"]
        shown = {name: form[f"arg_{name}"].value() for name in ("text", "level", "note", "is_loud")}
        assert shown == {"text": " a\u00e9 ", "level": 7, "note": "b", "is_loud": True}
        assert form["arg_items"].value() == "[1, 2]"
        assert form["arg_colour"].value() == '"b"'
        posted = {name: form[name].value() for name in form.fields if name.startswith("arg_")}
        send(client, definition, **{k: v for k, v in posted.items() if v is not None})
        assert Task.objects.latest("id").kwargs == Task.objects.earliest("id").kwargs
    schedule = schedules.create("hourly", echo.name, Every(3600), args=["a"])
    form = client.get(f"{form_url(echo.name)}&schedule={schedule.pk}").context["form"]
    assert form["arg_args"].value() == '["a"]'
    for odd in ("task=x", "schedule=x", f"task={made.id}", "task=", "schedule=99"):
        assert client.get(f"{form_url(echo.name)}&{odd}").context["form"].initial == {}


def test_the_form_shows_no_secret_of_a_task(log_in_as: LogIn) -> None:
    made = log_in.enqueue(user="bob", password=SECRET)
    page = read(log_in_as("superuser"), f"{form_url(log_in.name)}&task={made.id}")
    assert SECRET not in page
    assert 'value="bob"' in page


def test_who_may_only_enqueue_sees_no_arguments_of_tasks(log_in_as: LogIn) -> None:
    made = log_in.enqueue(user="bartholomew", password=SECRET)
    client = log_in_as("viewer", "enqueue")
    assert "bartholomew" not in read(client, f"{form_url(log_in.name)}&task={made.id}")
