"""Limits and admissions are written as in Python, or as JSON; nothing of a text is run."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue import Capacity, Concurrency, Debounce, Fair, InvalidTask, Rate, Sequence, Throttle
from taskqueue.declarations.options import OPTIONS, options_from_json
from taskqueue.models import Task
from tests.management.test_taskqueue import refused, run
from tests.sample.tasks import add

WRITTEN: list[tuple[str, Any, Any]] = [
    ("concurrency", 'Concurrency(2, key="a")', (Concurrency(2, key="a"),)),
    ("concurrency", " [Concurrency(2), Concurrency(1, per='host')] ",
     (Concurrency(2), Concurrency(1, per="host"))),
    ("concurrency", {"limit": 2, "key": ["a", "b"]}, (Concurrency(2, key=("a", "b")),)),
    ("rate", "Rate('100/m'), Rate(rate='5/s', smooth=True)", (Rate("100/m"),
                                                               Rate("5/s", smooth=True))),
    ("fair", 'Fair("a", weight=2)', Fair("a", weight=2)),
    ("sequence", "Sequence('a', on_failure='halt')", Sequence("a", on_failure="halt")),
    ("debounce", 'Debounce("5s", key=("a", "b"), max_wait="1m")',
     Debounce(5, key=("a", "b"), max_wait=60)),
    ("throttle", 'Throttle("1/h")', Throttle("1/h")),
    ("capacity", 'Capacity(10, when_full="drop")', Capacity(10, when_full="drop")),
    ("cost", "3", 3),
    ("requires", "gpu, eu", ("eu", "gpu")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "value"), WRITTEN)
def test_limits_written_as_text_equal_those_of_python(name: str, text: Any, value: Any) -> None:
    found = OPTIONS[name].check(options_from_json({name: text})[name])
    assert repr(found).replace("datetime.timedelta(seconds=5)", "5").replace(
        "datetime.timedelta(seconds=60)", "60"
    ) == repr(value)


REFUSED = [
    ("concurrency", "2"), ("concurrency", "Rate('1/s')"), ("concurrency", "Concurrency(2, 3)"),
    ("concurrency", "Concurrency(limit=2, limit=3)"), ("concurrency", "Concurrency()"),
    ("concurrency", "Concurrency(2, kye='a')"), ("concurrency", "Concurrency(1 + len('a'))"),
    ("concurrency", "Concurrency(2).limit"), ("concurrency", "Concurrency(*[2])"),
    ("concurrency", "Concurrency(**{'limit': 2})"), ("rate", "Rate(__import__('os'))"),
    ("rate", "x" * 2000), ("rate", "(" * 500), ("rate", "Rate('often')"), ("rate", "\x00"),
    ("fair", "Fair('a'), Fair('b')"), ("capacity", "Capacity(1), Capacity(2)"),
    ("cost", "many"), ("requires", "GPU!"), ("debounce", "Debounce('soon')"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), REFUSED)
def test_anything_else_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidTask):
        OPTIONS[name].check(options_from_json({name: text})[name])


@pytest.mark.django_db
def test_the_command_line_takes_them() -> None:
    run("enqueue", add.name, "--args", "[1]", "--set", 'rate=Rate("100/m", key="a")', "--set",
        "requires=gpu", "--set", "cost=2")  # fmt: skip
    limits = Task.objects.get().limits
    assert (limits["tags"], limits["cost"], limits["limits"][0]["rate"]) == (["gpu"], 2, 100)
    code, said = refused("enqueue", add.name, "--args", "[1]", "--set", "rate=100/m")
    assert (code, "must be such as Rate(" in said) == (2, True)
