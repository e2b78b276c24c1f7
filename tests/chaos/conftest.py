"""Fixtures that the tests of the checker share."""

from __future__ import annotations

import pytest

from tests.chaos.story import Story


@pytest.fixture
def story() -> Story:
    """A story in which nothing has happened yet."""
    return Story()
