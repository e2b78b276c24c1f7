"""Text that is stored in columns is checked, or made fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskqueue.declarations.payload import check_text, storable


@pytest.mark.parametrize("text", ["a\x00", "\ud800", "é\udfff"])
def test_text_of_a_column_is_checked_too(text: str) -> None:
    with pytest.raises(ValueError, match="NUL character or a lone surrogate"):
        check_text(text, limit=10, what="it")


def test_text_longer_than_its_column_is_refused() -> None:
    assert check_text("é" * 10, limit=10, what="it") == "é" * 10
    with pytest.raises(ValueError, match="may have at most 10 characters; this one has 11"):
        check_text("é" * 11, limit=10, what="it")
    with pytest.raises(TypeError, match="must be text, not int"):
        check_text(5, limit=10, what="it")  # type: ignore[arg-type]


@given(text=st.text(), limit=st.integers(min_value=1, max_value=30))
def test_any_text_can_be_made_storable_within_its_limit(text: str, limit: int) -> None:
    fit = storable(text, limit=limit, marker="…")
    assert len(fit) <= limit
    check_text(fit, limit=31, what="it")
