"""A name belongs to one function; a module may be run again."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from taskqueue import InvalidTask, task
from taskqueue.declarations.definition import registry

TWO = "Two functions are named"
Load = Callable[[str], ModuleType]
_numbers = count()


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Write a module and import it; written again, it is reloaded."""
    name = f"registry_sample_{next(_numbers)}"
    monkeypatch.syspath_prepend(str(tmp_path))
    # The time of a file is too coarse to tell two texts of one length apart.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(text: str) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(f"from taskqueue import task\n{text}")
        importlib.invalidate_caches()
        module = sys.modules.get(name)
        return importlib.reload(module) if module else importlib.import_module(name)

    yield load
    sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "text",
    [
        "a, b = task(lambda: 1), task(lambda: 2)",
        "a, b = task(lambda: 1), task(lambda: 1)",
        "@task\ndef send(): return 1\n@task\ndef send(): return 2",
        "@task(name='s.send')\ndef one(): ...\n@task(name='s.send')\ndef two(): ...",
        "def make(n):\n    return task(name='s.made')(lambda: n)\na, b = make(1), make(2)",
        "a, b = [task(name='s.default')(lambda n=n: n) for n in (1, 2)]",
    ],
)
def test_two_functions_of_one_module_cannot_share_a_name(load: Load, text: str) -> None:
    with pytest.raises(InvalidTask, match=rf"{TWO} .*Give one of them another name"):
        load(text)


def test_a_module_that_is_reloaded_may_have_changed(load: Load) -> None:
    first = load("@task\ndef send(): return 1")
    assert load("\n\n@task\ndef send(): return 2").send() == 2
    assert registry.get(first.send.name)() == 2
    with pytest.raises(InvalidTask, match=TWO):
        load("@task\ndef send(): return 1\n@task\ndef send(): return 3")


def test_a_module_that_is_imported_anew_may_have_changed(load: Load) -> None:
    name = load("@task\ndef send(): return 1").__name__
    del sys.modules[name]
    again: Any = load("\n@task\ndef send(): return 2")
    assert registry.get(f"{name}.send") is again.send


def test_a_function_that_a_test_defines_each_time_anew_is_one() -> None:
    def define() -> Any:
        @task(name="tests.defined_anew")
        def inner() -> int:
            return 1

        return inner

    assert define()() == define()() == 1
