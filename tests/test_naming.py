"""How messages write numbers of things."""

from __future__ import annotations

import pytest

from taskqueue.core.naming import counted


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 tasks"), (1, "1 task"), (2, "2 tasks"), (12_000, "12,000 tasks")]
)
def test_one_thing_is_written_in_the_singular(number: int, text: str) -> None:
    assert counted(number, "task") == text
