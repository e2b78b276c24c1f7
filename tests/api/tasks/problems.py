"""What a refused request is answered."""

from __future__ import annotations

from typing import Any


def problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    """What the answer tells, which must be a problem of that status and code."""
    assert (answer.status_code, answer["Content-Type"]) == (
        status, "application/problem+json",
    ), answer.content  # fmt: skip
    told = dict(answer.json())
    assert (told["status"], told["code"]) == (status, code), told
    return told
