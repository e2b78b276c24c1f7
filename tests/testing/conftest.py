"""A clean stage for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.testing.bodies import play


@pytest.fixture(autouse=True)
def _empty_stage() -> Iterator[None]:
    yield
    play.clear()
