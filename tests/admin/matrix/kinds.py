"""A page of the admin's matrix: who may look, and what may be posted by whom.

A way to be let in is a set of permissions that are all needed; of several ways one is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.admin.matrix.roles import NONE, Permissions

Ways = list[Permissions]


def ways(*each: str) -> Ways:
    """`ways("a b", "c")`: a and b together, or c."""
    return [frozenset(way.split()) for way in each]


NOBODY: Ways = []
ANY_STAFF: Ways = [NONE]


@dataclass(frozen=True, kw_only=True)
class Act:
    """A POST that changes something, for those who may; `on` is the row it is done to."""

    name: str
    needs: Ways
    body: dict[str, Any]
    """A value such as `$failed` stands for the key of that row."""
    on: str
    query: str = ""
    answers: int = 302
    refused: frozenset[int] = frozenset({403})


@dataclass(frozen=True, kw_only=True)
class Page:
    """The permissions to GET it. `look` is None where there is nothing to GET."""

    look: Ways | None
    on: str = ""
    query: dict[str, str] = field(default_factory=dict)
    answers: int = 200
    acts: tuple[Act, ...] = ()

    @property
    def entry(self) -> Ways:
        """The ways to be let in at all, if only to be told that the method is wrong."""
        return (
            self.look if self.look is not None else [way for act in self.acts for way in act.needs]
        )

    @property
    def rules(self) -> list[Ways]:
        """All that decides about somebody here."""
        return [self.entry, *(act.needs for act in self.acts)]


def of_rows(model: str, look: Ways) -> dict[str, Page]:
    """The pages that the admin has for every model, where its forms change nothing."""
    row = f"{model}/<path:object_id>"
    return {
        f"{model}/": Page(look=look),
        f"{model}/add/": Page(look=NOBODY),
        f"{row}/history/": Page(look=look, on=model),
        f"{row}/delete/": Page(look=NOBODY, on=model),
        f"{row}/change/": Page(look=look, on=model),
        f"{row}/": Page(look=ANY_STAFF, on=model, answers=302),
    }


# The tests' server is no ASGI one; `tests.admin.test_live` asks one that is.
NO_ASGI = 404
VIEW_TASK = ways("view_task")
OPERATE = ways("view_task operate")
