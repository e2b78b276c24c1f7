"""The module in which the code of a guide runs."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from taskqueue import definitions
from taskqueue.declarations import handlers
from taskqueue.declarations.workflows.workflow import workflows


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of a module `shop.tasks`, whose definitions are forgotten afterwards."""
    for registry in (definitions.registry, workflows):
        monkeypatch.setattr(registry, "_definitions", dict(registry._definitions))
    monkeypatch.setattr(handlers, "_handlers", dict(handlers._handlers))
    monkeypatch.setitem(sys.modules, "shop", ModuleType("shop"))
    module = ModuleType("shop.tasks")
    monkeypatch.setitem(sys.modules, "shop.tasks", module)
    return vars(module)
