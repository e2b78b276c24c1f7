"""Fixtures for pytest: `pytest_plugins = ["taskqueue.testing.pytest"]` in a `conftest.py`.

`taskqueue_travel` and `taskqueue_eager` are for tests that use the database in their own way, such
as by pytest-django's `db`. So is the marker `taskqueue_eager`, which takes the options of
`taskqueue.testing.eager`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from taskqueue.exceptions import Duration

LASTING = ("taskqueue.testing.immediacy", "taskqueue.testing.journeys")
"""The modules of what may be begun by `start`, and left."""
MARKER = "taskqueue_eager(errors=…, when=…): tasks run as they are enqueued"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, also under `--strict-markers`."""
    config.addinivalue_line("markers", MARKER)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that is marked has the fixture."""
    names: list[str] = getattr(item, "fixturenames", [])
    if item.get_closest_marker("taskqueue_eager") and "taskqueue_eager" not in names:
        names.append("taskqueue_eager")


@pytest.fixture(autouse=True)
def _taskqueue_ends_what_is_left() -> Iterator[None]:
    """Eager modes and journeys that a test has begun and left end with it; its class's go on."""
    before = {name: module.begun() for name, module in _lasting()}
    yield
    for name, module in _lasting():
        module.end_all_but(before.get(name, 0))


def _lasting() -> list[tuple[str, Any]]:
    # Not imported here: tests that have nothing to do with Django run by this plugin too.
    return [(name, sys.modules[name]) for name in LASTING if name in sys.modules]


@pytest.fixture
def taskqueue_eager(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tasks run as they are enqueued: `taskqueue.testing.eager`."""
    from taskqueue.testing import eager

    marker = request.node.get_closest_marker("taskqueue_eager")
    with eager(**(marker.kwargs if marker else {})):
        yield


@pytest.fixture
def taskqueue_travel() -> Iterator[Callable[[Duration | datetime], None]]:
    """`taskqueue_travel(timedelta(hours=1))`: time passes, until the end of the test."""
    from taskqueue.testing.journeys import journeys

    with journeys() as travel:
        yield travel
