"""The fixtures that users get, and a clean stage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.testing.bodies import play

pytest_plugins = ["taskqueue.testing.pytest"]


@pytest.fixture(autouse=True)
def _empty_stage() -> Iterator[None]:
    yield
    play.clear()
