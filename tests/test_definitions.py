"""A function under `@task`: found by its name, called as before, refused where it cannot work."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from taskqueue import ArgumentsDoNotBind, Context, InvalidTask, UnknownTask, task
from taskqueue.declarations.definition import Registry, registry
from taskqueue.definitions import Definition
from taskqueue.models import Task
from tests.sample import tasks


def body(a: int, b: int = 1, /, *rest: int, c: int = 0) -> int:
    return a + b + sum(rest) + c


async def async_body(a: int) -> int:
    return a * 2


def test_the_name_of_a_definition_is_that_of_its_function_unless_it_is_given() -> None:
    assert tasks.add.name == "tests.sample.tasks.add"
    assert task(body).name == "tests.test_definitions.body"
    assert task(name="shop.total")(body).name == "shop.total"
    assert repr(tasks.add) == "<task tests.sample.tasks.add>"


def test_a_definition_keeps_the_name_and_docstring_of_its_function() -> None:
    assert tasks.add.__name__ == "add"
    assert tasks.add.__doc__ == "A sum."
    assert tasks.add.__module__ == "tests.sample.tasks"
    assert tasks.add.__wrapped__ is tasks.add.body


def test_the_decorator_works_with_and_without_parentheses() -> None:
    assert isinstance(task(body), Definition)
    assert isinstance(task()(body), Definition)
    assert task(body)(1, 2, 3, c=4) == 10


def test_a_definition_is_called_as_its_function() -> None:
    definition = task(body)
    assert definition(1) == definition.call(1) == 2
    assert async_to_sync(definition.acall)(1, 2) == 3


def test_an_async_body_is_called_from_either_world() -> None:
    definition = task(async_body)
    assert definition.is_async
    assert definition.call(2) == 4
    assert async_to_sync(definition.acall)(2) == 4


def test_a_call_raises_the_exception_of_the_body() -> None:
    with pytest.raises(ValueError, match="it failed"):
        tasks.fail.call()
    with pytest.raises(ValueError, match="it failed"):
        async_to_sync(tasks.fail.acall)()


def test_a_definition_is_found_by_its_name() -> None:
    assert registry.get("tests.sample.tasks.add") is tasks.add
    assert registry.find("tests.sample.tasks.add") is tasks.add
    assert tasks.add in registry.all()
    names = [definition.name for definition in registry.all()]
    assert names == sorted(names)


def test_an_unknown_name_suggests_the_nearest() -> None:
    assert registry.find("tests.sample.tasks.ad") is None
    with pytest.raises(UnknownTask, match=r"Did you mean 'tests\.sample\.tasks\.add'"):
        registry.get("tests.sample.tasks.ad")
    with pytest.raises(UnknownTask, match=r"^No task is named '\?'\.$"):
        registry.get("?")


def test_two_functions_cannot_share_a_name() -> None:
    own = Registry()
    own.register(task(name="tests.shared")(body))
    with pytest.raises(InvalidTask) as refusal:
        task(name="tests.shared")(async_body)
    assert "Two functions are named 'tests.shared'" in str(refusal.value)
    assert "test_definitions.body" in str(refusal.value)
    assert "async_body" in str(refusal.value)
    assert "@task(name=...)" in str(refusal.value)


def test_the_same_function_may_be_met_again() -> None:
    first, second = task(body), task(priority=5)(body)
    assert registry.get(first.name) is second


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


def keyword_only(*, context: Context) -> None: ...


def nothing() -> None: ...


async def asynchronous() -> None: ...


@pytest.mark.parametrize("generates", [generator, async_generator])
def test_a_generator_is_refused(generates: Any) -> None:
    with pytest.raises(
        InvalidTask, match=r"is a generator\. Return the result instead of yielding"
    ):
        task(generates)


def test_a_function_inside_another_is_refused_unless_it_has_a_name() -> None:
    def inner() -> None: ...

    with pytest.raises(InvalidTask, match="Move it to the top of its module"):
        task(inner)
    assert task(name="tests.inner")(inner).name == "tests.inner"


@pytest.mark.parametrize(
    "thing",
    [functools.partial(body, 1), len, int, 5, "name", object(), tasks.add, None],
    ids=repr,
)
def test_a_definition_of_no_function_is_refused(thing: Any) -> None:
    with pytest.raises(InvalidTask, match="@task decorates functions, not"):
        task()(thing)


@pytest.mark.parametrize("without", [nothing, keyword_only])
def test_a_body_that_takes_its_context_needs_a_place_for_it(without: Any) -> None:
    with pytest.raises(InvalidTask, match="has takes_context=True, but no first argument"):
        task(takes_context=True)(without)


def test_an_atomic_body_is_no_coroutine() -> None:
    with pytest.raises(InvalidTask, match="atomic=True is for `def` bodies only"):
        task(atomic=True)(asynchronous)


def test_a_sensitive_argument_must_exist_unless_any_may() -> None:
    with pytest.raises(InvalidTask, match="no argument 'zzz' to redact"):
        task(sensitive=["zzz"])(body)
    assert task(sensitive=["zzz"])(_any_keyword).options.sensitive == {"zzz"}


def _any_keyword(**kwargs: Any) -> None: ...


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("args", "kwargs", "reason"),
    [
        ((), {}, "missing a required argument: 'a'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1,), {"a": 2}, "multiple values for argument 'a'"),
        ((1,), {"c": 2}, "unexpected keyword argument 'c'"),
    ],
)
def test_arguments_that_do_not_bind_are_refused_at_enqueue(
    args: Any, kwargs: Any, reason: str
) -> None:
    for call in (
        lambda: tasks.add.enqueue(*args, **kwargs),
        lambda: tasks.add.enqueue_many([((1,), {}), (args, kwargs)]),
    ):
        with pytest.raises(ArgumentsDoNotBind, match=reason) as refusal:
            call()
        assert "tests.sample.tasks.add(a: " in str(refusal.value)
        assert isinstance(refusal.value, TypeError)
    assert not Task.objects.exists()


@pytest.mark.django_db
def test_the_context_is_no_argument_of_an_enqueue() -> None:
    assert tasks.mark.enqueue("note").args == ["note"]
    assert tasks.mark.enqueue(note="note").kwargs == {"note": "note"}
    with pytest.raises(ArgumentsDoNotBind):
        tasks.mark.enqueue("context", "note")
    with pytest.raises(ArgumentsDoNotBind):
        tasks.mark.enqueue(context="context")


@pytest.mark.django_db
def test_positional_only_and_variadic_parameters_bind_as_in_python() -> None:
    definition = task(body)
    assert definition.enqueue(1, 2, 3, 4, c=5).args == [1, 2, 3, 4]
    with pytest.raises(ArgumentsDoNotBind):
        definition.enqueue(a=1)
    assert tasks.echo.enqueue(1, args=3, kwargs=4, name=5).kwargs["args"] == 3


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("delay", " Did you mean noop.enqueue()?"),
        ("apply_async", " Did you mean noop.enqueue()?"),
        ("signature_", ""),
        ("subtask", " Did you mean noop.s()?"),
        ("AsyncResult", " Did you mean noop.get_result()?"),
    ],
)
def test_names_of_other_task_queues_are_answered_with_ours(name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(tasks.noop, name)
    assert str(caught.value) == f"'Definition' object has no attribute {name!r}.{hint}"
    assert not hasattr(tasks.noop, name)
