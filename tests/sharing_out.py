"""Which tests `make test` runs on one of the two databases alone."""

from __future__ import annotations

import os
import re
from random import randrange
from zlib import crc32

import pytest

from tests.worker_process import ROOT

DATABASE = os.environ.get("TASKQUEUE_TEST_DATABASE", "sqlite")
NO_DATABASE = [
    "rules/test_*.py",
    "chaos/test_check*.py",
    "engine/test_search_owners.py",
    "schedules/year/test_checking.py",
    "worker/test_jobs.py",
    "worker/test_newer_tasks.py",
    "worker/test_ports.py",
    "worker/test_verdicts.py",
    "worker/test_vitals.py",
    "worker/test_watchdog.py",
    "admin/test_absence.py",
    "admin/test_themes.py",
    "api/test_schema.py",
    "docs/test_blocks.py",
    "docs/test_reference.py",
    "docs/test_site.py",
    "docs/test_tables.py",
    "browser/test_every_page.py",
    "management/test_trouble.py",
    "testing/test_importing.py",
    "test_architecture.py",
    "test_context.py",
    "test_deployment.py",
    "test_discovery.py",
    "test_languages.py",
    "test_postgres_server.py",
    "test_registry.py",
    "test_side_by_side.py",
    "test_text.py",
    "worker/test_code.py",
    "worker/test_fork_locks.py",
    "worker/test_late_signals.py",
    "worker/test_shared_signals.py",
    "workflows/graphs/test_*.py",
]
"""Tests that need no database, or bring their own: they run once, beside SQLite."""
FACES = [
    "admin/matrix/test_*.py",
    "admin/test_escaping.py",
    "admin/test_languages.py",
    "admin/test_operations_roles.py",
    "admin/test_schedules_refusals.py",
    "admin/test_sites.py",
    "admin/test_strict_pages.py",
    "admin/test_themes.py",
    "api/matrix/test_*.py",
    "browser/test_admin_*.py",
    "browser/test_api_docs.py",
    "browser/test_dashboard.py",
    "browser/test_every_page.py",
    "management/test_schedules_refusals.py",
]
"""Tests of every page for every role or in a browser, and of refusals: on PostgreSQL only with
TASKQUEUE_FULL=1."""
SECOND_FORMS = {"thread": "process", "chunks": "few"}
"""Of tests that are there in two forms, by the first: pools, and ways to keep calls."""
FORM = re.compile(r"(?<=[\[-])(process|thread|few|chunks)(?=[\]-])")
"""Where the name of a test tells the form."""
SHARED_OUT = (
    "admin", "alerts", "api", "browser", "docs", "management", "schedules", "test_backend.py",
    "test_capacity_races.py", "test_demo.py", "test_embedded.py", "testing", "tracing", "webhooks",
    "worker", "workflows",
)  # fmt: skip
NOT_SHARED_OUT = [
    "alerts/test_judging.py",
    "api/test_schemathesis.py",
    "schedules/test_limits.py",
    "schedules/year/test_*.py",
    "webhooks/test_pump.py",
    "workflows/test_count*.py",
    "workflows/test_exactly_once.py",
    "workflows/test_fan_out_races.py",
    "workflows/test_inserting.py",
    "workflows/test_kept_plans.py",
    "workflows/test_large_maps.py",
    "workflows/test_limited_steps.py",
    "workflows/test_locking.py",
    "workflows/test_pruning.py",
    "workflows/test_reconciling.py",
    "workflows/test_step_ends.py",
    "workflows/test_stopping.py",
    "workflows/test_trouble.py",
]
"""Tests that start processes, render pages, send messages, run what the documentation shows, or
are about what workflows and schedules mean, of which each is run on one database, whichever: what
differs between these, its statements, locks and plans, is tested on both by what stands below. So
is each other test that starts workers. Of a test that is there in two forms, or of races of many
forms for the same places, each database runs some."""
RACES = [
    "admin/test_*once.py",
    "api/tasks/test_once.py",
    "api/tasks/test_together.py",
    "api/test_schedules_together.py",
    "test_capacity_races.py",
]
"""Of those shared out, the tests that race: SQLite, with one writer at a time, cannot lose them, so
that the seed chooses which PostgreSQL has."""
TURNS = (1, 3, 5)
"""Of six, PostgreSQL's: all of tests that start workers, race or have two forms, else two, for it
takes about twice the time."""
WORKERS = "start_worker"
"""The fixture of tests that start workers."""
IS_SHARED_OUT = os.environ.get("TASKQUEUE_TEST_SHARED_OUT") == "1"
IS_FULL = os.environ.get("TASKQUEUE_FULL") == "1"
SEED = int(os.environ.setdefault("TASKQUEUE_TEST_SEED", str(randrange(1000))))
"""Chooses what of a large matrix the ordinary run has; the header of a run tells it. All parts of
`make test` have the same one."""
ONCE = [*NO_DATABASE, *([] if IS_FULL else FACES)]
MARKERS = {
    "postgresql_only": "about PostgreSQL; skipped on SQLite",
    "sqlite_only": "about SQLite; skipped on PostgreSQL",
}


def is_left_to_the_other_database(item: pytest.Item) -> bool:
    """By its name, so that the same are left to it each time; of `RACES` by the seed, too."""
    path = item.path.relative_to(ROOT / "tests")
    form = FORM.search(item.nodeid)
    if any(map(item.get_closest_marker, MARKERS)) or any(map(path.match, ONCE)):
        return False
    is_shared_out = path.parts[0] in SHARED_OUT and not any(map(path.match, NOT_SHARED_OUT))
    starts_workers = WORKERS in getattr(item, "fixturenames", ())
    if not is_shared_out and not starts_workers and form is None:
        return False
    is_second = form is not None and form[0] in SECOND_FORMS
    name = FORM.sub(lambda found: SECOND_FORMS.get(found[0], found[0]), item.nodeid)
    turn = crc32(name.encode()) + is_second
    is_race = any(map(path.match, RACES))
    turn += SEED if is_race else 0
    turns = TURNS if starts_workers or form is not None or is_race else TURNS[:2]
    return (turn % 6 in turns) != (DATABASE == "postgresql")
