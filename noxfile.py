"""The suite on every supported pair of Python and Django: `nox`, or `make matrix`."""

from __future__ import annotations

import nox
from nox.command import CommandFailed

DJANGO_OF_PYTHON = {"3.11": "5.2", "3.12": "6.0", "3.13": "6.1"}
DATABASES = ("sqlite", "postgresql")

nox.needs_version = ">=2025.5"
nox.options.error_on_missing_interpreters = True
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "tests", "conformance"]


@nox.session(python=list(DJANGO_OF_PYTHON))
def tests(session: nox.Session) -> None:
    """Run the whole suite on both databases; arguments after `--` go to pytest."""
    django = DJANGO_OF_PYTHON[str(session.python)]
    session.install("--editable", ".[dev]", f"django~={django}.0")
    session.run("python", "-m", "django", "--version")
    _run_on_both_databases(session, "-m", "pytest", "-W", "error", *session.posargs)


@nox.session(python=list(DJANGO_OF_PYTHON))
def conformance(session: nox.Session) -> None:
    """Run Django's own tests of task backends against ours, with neither the admin nor DRF."""
    django = DJANGO_OF_PYTHON[str(session.python)]
    session.install("--editable", ".[dev]", f"django~={django}.0")
    _run_on_both_databases(session, "-W", "error", "-m", "tests.conformance")


def _run_on_both_databases(session: nox.Session, *arguments: str) -> None:
    failed = [name for name in DATABASES if not _passes(session, name, arguments)]
    if failed:
        session.error(f"{session.name} failed on {' and '.join(failed)}")


def _passes(session: nox.Session, database: str, arguments: tuple[str, ...]) -> bool:
    try:
        session.run("python", *arguments, env={"TASKQUEUE_TEST_DATABASE": database})
    except CommandFailed:
        return False
    return True


@nox.session(python="3.11")
def lint(session: nox.Session) -> None:
    """Check style and types with the oldest supported Python."""
    session.install("--editable", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy", "--strict", "-p", "taskqueue")
