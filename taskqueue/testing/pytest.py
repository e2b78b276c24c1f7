"""Fixtures for pytest: `pytest_plugins = ["taskqueue.testing.pytest"]` in a `conftest.py`.

`taskqueue_travel` and `taskqueue_eager` do not set up a database: use them with a fixture such
as pytest-django's `db`. The marker `taskqueue_eager` takes the options of `eager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import pytest

from taskqueue.exceptions import Duration
from taskqueue.testing.lasting import leftovers_ended

MARKER = "taskqueue_eager(errors=…, when=…): tasks run as they are enqueued"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, also for `--strict-markers`."""
    config.addinivalue_line("markers", MARKER)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give marked tests the fixture."""
    names: list[str] = getattr(item, "fixturenames", [])
    if item.get_closest_marker("taskqueue_eager") and "taskqueue_eager" not in names:
        names.append("taskqueue_eager")


@pytest.fixture(autouse=True)
def _taskqueue_ends_what_is_left() -> Iterator[None]:
    """End the modes that a test has begun; those of its class continue."""
    with leftovers_ended():
        yield


@pytest.fixture
def taskqueue_eager(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run tasks as they are enqueued: `taskqueue.testing.eager`."""
    from taskqueue.testing import eager

    marker = request.node.get_closest_marker("taskqueue_eager")
    with eager(**(marker.kwargs if marker else {})):
        yield


@pytest.fixture
def taskqueue_travel() -> Iterator[Callable[[Duration | datetime], None]]:
    """Return `travel(to)`, such as `travel(timedelta(hours=1))`, for the rest of the test."""
    from taskqueue.testing import travelling

    with leftovers_ended():
        yield lambda to: travelling(to).start()
