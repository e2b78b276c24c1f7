"""What a body says of its own attempt."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from taskqueue.exceptions import InvalidArguments, UnsupportedType
from taskqueue.worker.bodies.context import Context


@pytest.fixture
def said() -> list[Any]:
    """The lines that were said."""
    return []


@pytest.fixture
def context(said: list[Any]) -> Context:
    """The context of an attempt whose lines are kept here."""
    return Context(
        task_id="id",
        _lease_id=7,
        attempt=1,
        worker_name="w1",
        metadata={},
        _report_progress=lambda *progress: None,
        _report_line=lambda *line: said.append(line),
    )


@pytest.mark.parametrize("level", [logging.WARNING, "WARNING", "warning"])
def test_a_level_is_a_number_or_a_name(context: Context, said: list[Any], level: Any) -> None:
    context.log("careful", level)
    context.log("as always")
    assert said == [(7, logging.WARNING, "", "careful"), (7, logging.INFO, "", "as always")]


@pytest.mark.parametrize("detail", [{1, 2}, "x" * 5000, float("inf")])
def test_a_detail_that_is_large_or_no_json_is_refused(context: Context, detail: Any) -> None:
    with pytest.raises((InvalidArguments, UnsupportedType), match="detail"):
        context.progress(1, detail=detail)


def test_an_unknown_level_is_refused_with_the_choice(context: Context, said: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"No level is named 'LOUD'.*WARNING"):
        context.log("careful", "LOUD")
    assert not said
