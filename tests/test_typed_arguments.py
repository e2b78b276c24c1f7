"""Annotations say which arguments an enqueue admits, and what the body is given."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import override_settings

from taskqueue import InvalidArguments
from taskqueue.declarations.argument_schema import argument_schema
from taskqueue.declarations.definition import registry
from taskqueue.declarations.options import Options
from taskqueue.definitions import Definition
from taskqueue.exceptions import WrongType
from taskqueue.models import Task
from taskqueue.results import get_result
from taskqueue.testing import assert_enqueued, run_due
from tests.conftest import Drain
from tests.sample import typed_tasks as tasks
from tests.sample.models import Effect
from tests.sample.tasks import echo
from tests.sample.typed_tasks import Colour, Level, Line, Order, Shape
from tests.worker_process import ROOT

KEY = UUID("3f2504e0-4f89-11d3-9a0c-0305e82c3301")
DAY = date(2026, 2, 3)
SECRET = "a very secret value"
ORDER = Order(DAY, [Line(KEY, Decimal("1.50")), Line(KEY, Decimal(2), 3)], Colour.GREEN, Order(DAY))
AS_JSON = {
    "day": "2026-02-03",
    "lines": [
        {"article": str(KEY), "price": "1.50", "count": 1},
        {"article": str(KEY), "price": "2", "count": 3},
    ],
    "colour": "green",
    "parent": {"day": "2026-02-03", "lines": [], "colour": None, "parent": None},
}
GIVEN: dict[str, Any] = {
    "at": datetime(2026, 2, 3, 4, 5, 6, 7, tzinfo=UTC),
    "day": DAY,
    "clock": time(4, 5),
    "span": timedelta(days=1, hours=2),
    "price": Decimal("0.10"),
    "key": KEY,
    "colour": Colour.GREEN,
    "level": Level.HIGH,
    "shape": Shape.LINE,
    "days": [DAY, date(2027, 1, 1)],
    "prices": {"net": Decimal("9.99")},
}
STORED = {
    "at": "2026-02-03T04:05:06.000007+00:00",
    "day": "2026-02-03",
    "clock": "04:05:00",
    "span": "P1DT02H00M00S",
    "price": "0.10",
    "key": str(KEY),
    "colour": "green",
    "level": 3,
    "shape": "LINE",
    "days": ["2026-02-03", "2027-01-01"],
    "prices": {"net": "9.99"},
}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((1, 2, "three", True, "a", [4], {"five": 6}, 7, 8, 9), {"ten": "11"}),
        ((1, 2.5), {"text": "three", "flag": False, "choice": None, "items": (), "table": {}}),
        ((True,), {"price": None, "text": b"bytes come back as text"}),
    ],
)
def test_arguments_that_fit_the_annotations_are_enqueued(args: Any, kwargs: Any) -> None:
    tasks.plain.enqueue(*args, **kwargs)
    tasks.plain.enqueue_many([(args, kwargs)] * 2)
    assert Task.objects.count() == 3


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("args", "kwargs", "place", "reason"),
    [
        (("1",), {}, ("args", 0), r"the argument 'number' must be int, not str \('1'\)\."),
        ((1.0,), {}, ("args", 0), r"'number' must be int, not float \(1\.0\)\."),
        ((None,), {}, ("args", 0), r"must be int, not None\."),
        ((1, "2"), {}, ("args", 1), "'ratio' must be float, not str"),
        ((1,), {"text": 2}, ("kwargs", "text"), "'text' must be str, not int"),
        ((1,), {"flag": 1}, ("kwargs", "flag"), "'flag' must be bool, not int"),
        ((1,), {"choice": "c"}, ("kwargs", "choice"), r"'a', 'b' or None, not str \('c'\)\."),
        (
            (1,),
            {"items": [1, "2"]},
            ("kwargs", "items", 1),
            r"at \[1\], must be int, not str \('2'\)",
        ),
        ((1,), {"items": "12"}, ("kwargs", "items"), "'items' must be a list, not str"),
        ((1,), {"table": {"a": "b"}}, ("kwargs", "table", "a"), r"at \['a'\], must be float"),
        ((1,), {"table": [1]}, ("kwargs", "table"), r"\(a dict\), not list \(\[1\]\)"),
        ((1,), {"price": "x"}, ("kwargs", "price"), "must be int or None, not str"),
        ((1, 1, "", True, "a", [], {}, 1, "8"), {}, ("args", 8), "'rest' must be int, not str"),
        ((1,), {"ten": 10}, ("kwargs", "ten"), "'ten' must be str, not int"),
        ((object(),), {}, ("args", 0), r"Unsupported type: <class 'object'> at args\[0\]"),
    ],
)
def test_arguments_that_do_not_fit_the_annotations_are_refused(
    args: Any, kwargs: Any, place: Any, reason: str
) -> None:
    with pytest.raises(TypeError, match=reason) as caught:
        tasks.plain.enqueue(*args, **kwargs)
    assert isinstance(caught.value, InvalidArguments)
    assert caught.value.path == place
    with pytest.raises(WrongType, match=reason):
        tasks.plain.enqueue_many([((1,), {}), (args, kwargs)])
    assert not Task.objects.exists()


@pytest.mark.django_db
def test_the_check_can_be_left_out() -> None:
    with override_settings(TASKQUEUE={"CHECK_ARGUMENTS": False}):
        tasks.plain.enqueue("one")
        with pytest.raises(WrongType, match="must be date or None, not int"):
            tasks.typed.enqueue(day=1)  # The body could not be given a date.
    assert Task.objects.get().args == ["one"]


@pytest.mark.django_db
@pytest.mark.parametrize("call", [((SECRET,), {}), ((), {"secret": SECRET})])
def test_an_error_does_not_show_a_sensitive_value(call: Any) -> None:
    args, kwargs = call
    with pytest.raises(WrongType, match=r"not str \(sensitive, so not shown\)\.$") as caught:
        tasks.hide.enqueue(*args, **kwargs)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("definition", "make"),
    [
        (tasks.hide_first, lambda each: each.s([SECRET])),
        (tasks.hide_first, lambda each: each.map([[SECRET]])),
        (tasks.hide_second, lambda each: each.s([SECRET])),
    ],
)
def test_an_error_of_a_step_shows_no_value_that_may_be_sensitive(
    definition: Any, make: Callable[[Any], Any]
) -> None:
    """Whether the result of a step before comes first is not known where it is written."""
    with pytest.raises(WrongType, match="the argument 'one' must be int, not list") as caught:
        make(definition)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.django_db
def test_an_error_does_not_show_a_keyword_that_is_sensitive_among_others() -> None:
    with pytest.raises(WrongType, match="'token' must be int, not str") as caught:
        tasks.hide_keyword.enqueue(token=SECRET)
    assert SECRET not in str(caught.value)
    with pytest.raises(WrongType, match=r"not str \('shown'\)"):
        tasks.hide_keyword.enqueue(page="shown")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "value",
    [
        "long" * 1000,
        b"long" * 1000,
        [["long"] * 100] * 100,
        {"k" * 50 + str(n): n for n in range(99)},
    ],
)
def test_an_error_shows_the_beginning_of_a_long_value(value: Any) -> None:
    with pytest.raises(WrongType) as caught:
        tasks.plain.enqueue(value)
    assert len(str(caught.value)) < 500
    assert "..." in str(caught.value)


@pytest.mark.django_db
def test_an_error_does_not_ask_an_object_how_it_is_shown() -> None:
    class Asked:
        def __repr__(self) -> str:
            raise AssertionError

    with pytest.raises(WrongType, match=r"not list \(\[<.*Asked>\]\)"):
        tasks.plain.enqueue([Asked()])


@pytest.mark.django_db
@pytest.mark.parametrize("form", ["python", "json"])
def test_richer_values_are_stored_as_readable_json(form: str) -> None:
    given = GIVEN if form == "python" else STORED
    result = tasks.typed.enqueue(**given)
    assert Task.objects.get().kwargs == STORED
    assert result.kwargs == STORED

    tasks.ship.enqueue(ORDER if form == "python" else AS_JSON)
    assert Task.objects.get(name=tasks.ship.name).args == [AS_JSON]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kwargs", "reason"),
    [
        ({"at": "soon"}, "must be datetime or None, not str"),
        ({"day": datetime(2026, 1, 1)}, "must be date or None"),
        ({"day": "2026-02-30"}, r"date or None, not str \('2026-02-30'\)"),
        ({"span": "a while"}, "must be timedelta or None"),
        ({"price": "much"}, "must be Decimal or None"),
        ({"price": 1.5}, "must be Decimal or None, not float"),
        ({"key": "3f25"}, "must be UUID or None"),
        ({"colour": "blue"}, "must be Colour, one of red, green, not str"),
        ({"level": 2}, "must be Level, one of 1, 3 or None"),
        ({"shape": "CIRCLE"}, "must be Shape, one of POINT, LINE or None"),
        ({"days": ["2026-01-01", "x"]}, r"'days', at \[1\], must be date"),
        ({"prices": {"net": "x"}}, r"'prices', at \['net'\], must be Decimal"),
    ],
)
def test_richer_values_that_do_not_fit_are_refused(kwargs: Any, reason: str) -> None:
    with pytest.raises(WrongType, match=reason):
        tasks.typed.enqueue(**kwargs)
    assert not Task.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("order", "place", "reason"),
    [
        ({}, (), r"must be Order with the fields day, lines \(optional\), .* not dict"),
        ({"day": "2026-01-01", "dya": 1}, (), "must be Order with the fields day"),
        ({"day": "no"}, ("day",), r"at \['day'\], must be date"),
        (
            {"day": DAY, "lines": [{"article": KEY}]},
            ("lines", 0),
            "must be Line with the fields article, price",
        ),
        (Order(DAY, [Line(KEY, Decimal(1), "one")]), ("lines", 0, "count"), "must be int"),  # type: ignore[arg-type]
        (Line(KEY, Decimal(1)), (), "the argument 'order' must be Order"),
    ],
)
def test_a_dataclass_has_its_fields(order: Any, place: Any, reason: str) -> None:
    with pytest.raises(WrongType, match=reason) as caught:
        tasks.ship.enqueue(order)
    assert caught.value.path == ("args", 0, *place)


@pytest.mark.parametrize(
    ("hint", "value", "path", "reason"),
    [
        (
            Line | None,
            {"article": KEY, "price": "x"},
            ("price",),
            r"at \['price'\], must be Decimal",
        ),
        (list[int] | None, [1, "2"], (1,), r"at \[1\], must be int, not str"),
        (list[int] | dict[str, int], {"a": "b"}, ("a",), r"at \['a'\], must be int"),
        (Line | None, 7, (), "must be Line or None, not int"),
        (Line | None, {"article": KEY}, (), "must be Line with the fields article, price, count"),
        (list[int] | list[bool], ["2"], (), "must be a list or a list, not list"),
    ],
)
def test_an_error_within_a_union_is_pointed_at(
    hint: Any, value: Any, path: Any, reason: str
) -> None:
    def body(one: Any) -> None:
        """Take one of several kinds."""

    body.__annotations__["one"] = hint
    with pytest.raises(WrongType, match=reason) as caught:
        Definition(body, Options()).encode((value,), {})
    assert caught.value.path == ("args", 0, *path)


@pytest.mark.django_db
def test_without_an_annotation_only_json_is_admitted() -> None:
    with pytest.raises(InvalidArguments, match="Unsupported type"):
        echo.enqueue(DAY)


@pytest.mark.django_db(transaction=True)
def test_bodies_in_worker_processes_are_given_what_was_passed(drain: Drain) -> None:
    effect = Effect.objects.create(task_id=KEY, attempt=1, note="editors")
    expected = {
        tasks.typed.enqueue(**GIVEN): repr(tuple(GIVEN.values())),
        tasks.typed.enqueue(**STORED): repr(tuple(GIVEN.values())),
        tasks.ship.enqueue(ORDER, Order(DAY)): repr((ORDER, Order(DAY))),
        tasks.read_row.enqueue(effect, DAY): "editors 2026",
        tasks.read_row.enqueue(effect.pk, "2027-01-01"): "editors 2027",  # type: ignore[arg-type]
        tasks.typed_async.enqueue(DAY): 2026,
    }
    chain = (tasks.next_day.s(DAY) | tasks.next_day.s() | tasks.next_day.s()).enqueue()
    spread = tasks.next_day.map([DAY, "2026-12-31"]).enqueue()
    drain("--concurrency", "2")
    for result, value in expected.items():
        result.refresh()
        assert result.return_value == value
    chain.refresh()
    assert chain.return_value == "2026-02-06"
    spread.refresh()
    assert spread.return_value == ["2026-02-04", "2027-01-01"]


@pytest.mark.django_db(transaction=True)
def test_a_row_that_was_deleted_is_named(drain: Drain) -> None:
    effect = Effect.objects.create(task_id=KEY, attempt=1, note="editors")
    result = tasks.read_row.enqueue(effect, DAY)
    assert Task.objects.get().args == [effect.pk, "2026-02-03"]
    key, _ = effect.pk, effect.delete()
    drain("--concurrency", "1")
    result.refresh()
    [error] = result.errors
    assert error.exception_class_path == "tests.sample.models.Effect.DoesNotExist"
    assert f"sample.Effect with the primary key {key} does not exist" in error.message


@pytest.mark.django_db
def test_a_row_of_a_sensitive_argument_that_was_deleted_is_not_named() -> None:
    with pytest.raises(Effect.DoesNotExist, match="the argument 'effects' names") as caught:
        tasks.hide_rows.signature.load(tasks.hide_rows.name, [[771177]], {})
    assert "771177" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.django_db
@pytest.mark.parametrize("effect", [Effect(note="unsaved"), "many", None, DAY])
def test_a_row_must_be_saved(effect: Any) -> None:
    with pytest.raises(WrongType, match="must be a saved Effect, or its primary key"):
        tasks.read_row.enqueue(effect, DAY)


@pytest.mark.django_db
def test_keys_are_made_of_the_same_values_whichever_form_they_have() -> None:
    effect = Effect.objects.create(task_id=KEY, attempt=1, note="editors")
    first = tasks.read_row.enqueue(effect, DAY)
    second = tasks.read_row.enqueue(effect.pk, "2026-12-31")  # type: ignore[arg-type]
    assert second.id == first.id
    by_arguments = tasks.next_day.using(unique_key=True)
    assert by_arguments.enqueue(DAY).id == by_arguments.enqueue("2026-02-03").id  # type: ignore[arg-type]


@pytest.mark.django_db
def test_stored_arguments_that_do_not_fit_fail_the_task_for_good() -> None:
    result = tasks.next_day.using(max_attempts=5).enqueue(DAY)
    Task.objects.update(args=["never"])
    run_due()
    result = get_result(result.id)
    assert result.status == "failed"
    assert result.errors[0].message.endswith("'day' must be date, not str ('never').")


@pytest.mark.django_db
def test_events_of_a_batch_may_be_dataclasses() -> None:
    tasks.ship_many.collect_many([ORDER, AS_JSON])
    with pytest.raises(WrongType, match=r"at \[0\], must be Order, not int"):
        tasks.ship_many.collect(1)
    run_due()
    assert get_result(Task.objects.get().id).return_value == repr([ORDER, ORDER])


@pytest.mark.django_db
def test_arguments_of_steps_are_checked_in_their_places() -> None:
    with pytest.raises(WrongType, match="'number' must be int, not str"):
        tasks.plain.si("one")
    with pytest.raises(WrongType, match="'day' must be date, not int"):
        tasks.next_day.map([DAY, 7])
    # The result of the step before comes first here, so that the first of these is a ratio.
    assert (tasks.plain.s(1) | tasks.plain.s(0.5, "text")).build()


@pytest.mark.django_db
def test_assertions_compare_richer_values_as_they_are_stored() -> None:
    tasks.typed.enqueue(day=DAY, prices={"net": Decimal("9.99")})
    assert_enqueued(tasks.typed, kwargs={"day": DAY, "prices": {"net": Decimal("9.99")}})
    with pytest.raises(AssertionError):
        assert_enqueued(tasks.typed, kwargs={"day": DAY + timedelta(1)})


def test_the_schema_describes_what_is_stored() -> None:
    kwargs = argument_schema(tasks.typed)["properties"]["kwargs"]["properties"]
    assert kwargs["span"]["anyOf"][0] == {"type": "string", "format": "duration"}
    assert kwargs["colour"] == {"enum": ["red", "green"], "default": "red"}
    assert kwargs["shape"]["anyOf"][0] == {"enum": ["POINT", "LINE"]}
    order = argument_schema(tasks.ship)["properties"]["args"]["prefixItems"][0]
    assert order["required"] == ["day"]
    assert order["properties"]["lines"]["items"]["required"] == ["article", "price"]
    assert not order["additionalProperties"]


@pytest.mark.django_db
def test_the_document_shows_what_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_definitions", dict(registry._definitions))
    text = (ROOT / "docs" / "arguments.md").read_text()
    declared, called = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    module = ModuleType("shop.tasks")
    monkeypatch.setitem(sys.modules, "shop.tasks", module)
    exec(declared, vars(module))
    refused, accepted = called.split("\n\n")
    call, message = refused.split("\n# WrongType: ")
    with pytest.raises(WrongType, match=re.escape(message)):
        exec(call, vars(module))

    user = User.objects.create(username="ada")
    exec(accepted, vars(module) | {"user": user})
    [stored] = re.findall(r"# stored: (.*)", accepted)
    assert Task.objects.get().args == [user.pk, *json.loads(stored)[1:]]
    assert module.send_invoice.loaded(Task.objects.get().args, {})[0] == [
        user, DAY, [module.Line("tea", Decimal("1.50"))]
    ]  # fmt: skip
