"""What a web process answers to the probes of whoever runs it: is it alive, can it work."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from django.db import DatabaseError, InterfaceError
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from taskqueue.engine.connections import project_connection
from taskqueue.monitoring.bounded import NoAnswer, Question

OK, UNAVAILABLE = "ok", "unavailable"
DATABASE, MIGRATIONS = "database", "migrations"
APP = "taskqueue"
LONGEST = 2.0
"""Seconds; probes give up after one to five."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    """`database` or `migrations`."""
    is_ok: bool
    detail: str = ""
    """What is wrong, in the database's words: not for strangers."""


@dataclass(frozen=True, kw_only=True)
class Health:
    """The status is for anybody; the checks are for those who may look at the workers."""

    checks: tuple[Check, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Whether all is well: 200, otherwise 503."""
        return all(check.is_ok for check in self.checks)

    @property
    def status(self) -> str:
        """`ok` or `unavailable`."""
        return OK if self.is_ok else UNAVAILABLE


WELL = Health()


def live() -> Health:
    """Whether this process answers at all; touches nothing."""
    return WELL


def ready(*, seconds: float = LONGEST) -> Health:
    """Whether the database answers within so many seconds, with taskqueue's migrations applied.

    Whoever asks while another does gets the same answer, so that no crowd of them makes more than
    one connection, also while the database is away.
    """
    global _question
    question = _question
    if question is None or not question.is_open:
        question = _question = Question(_look, seconds=seconds)
    try:
        return question.answer()
    except NoAnswer as error:
        return _without_database(str(error))
    except (DatabaseError, InterfaceError, OSError) as error:
        return _without_database(" ".join(str(error).split()))


_question: Question[Health] | None = None


def _look() -> Health:
    missing = sorted(_leaves() - _applied())
    detail = f"Not applied: {', '.join(missing)}. Run manage.py migrate." if missing else ""
    return Health(
        checks=(
            Check(name=DATABASE, is_ok=True),
            Check(name=MIGRATIONS, is_ok=not missing, detail=detail),
        )
    )


def _without_database(detail: str) -> Health:
    return Health(checks=(Check(name=DATABASE, is_ok=False, detail=detail),))


@lru_cache(maxsize=1)
def _leaves() -> frozenset[str]:
    """The newest migrations of taskqueue in this code; reading all of a project's takes a while."""
    nodes = MigrationLoader(None).graph.leaf_nodes(APP)
    return frozenset(name for _, name in nodes)


def _applied() -> frozenset[str]:
    recorder = MigrationRecorder(project_connection())
    if not recorder.has_table():
        return frozenset()
    rows = recorder.migration_qs.filter(app=APP, name__in=_leaves())
    return frozenset(rows.values_list("name", flat=True))
