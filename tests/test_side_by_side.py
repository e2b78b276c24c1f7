"""Which pytests `make test` runs side by side."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.side_by_side import FACES, NOTHING_COLLECTED, PATIENT, Part, parts
from tests.worker_process import ROOT


def described(*arguments: str, **environment: str) -> dict[str, list[str]]:
    return {part.title: list(part.arguments) for part in parts(arguments, environment)}


def test_the_whole_suite_is_run_in_six_parts_on_each_database() -> None:
    worker, api, patient = ["tests/worker", "-x"], ["tests/api", "-x"], [*PATIENT, "-x"]
    faces = [*FACES, "-x"]
    others = ["tests/worker", "tests/api", "tests/browser", *PATIENT, *FACES]
    browser = ["tests/browser", "-x"]
    rest = ["tests", *(f"--ignore={each}" for each in others), "-x"]
    assert described("-x") == {
        "sqlite: the patient": patient,
        "sqlite: tests/worker": worker,
        "postgresql: the patient": patient,
        "postgresql: tests/worker": worker,
        "sqlite: faces": faces,
        "sqlite: tests/api": api,
        "sqlite: tests/browser": browser,
        "sqlite: the rest": rest,
        "postgresql: faces": faces,
        "postgresql: tests/browser": browser,
        "postgresql: tests/api": api,
        "postgresql: the rest": rest,
    }


def test_all_of_it_has_workers_behind_a_pooler_in_each_of_its_modes_too() -> None:
    more = [part for part in parts(["-x"], {"TASKQUEUE_FULL": "1"}) if part.pooler]
    assert {(part.pooler, part.arguments) for part in more} == {
        ("transaction", ("tests/worker", "-x")),
        ("session", ("tests/worker", "-x")),
    }
    assert len({part.title for part in more}) == 2
    assert not [part for part in parts(["-x"], {}) if part.pooler]


def test_the_quick_part_is_run_on_sqlite_in_two_parts() -> None:
    quick = described("--quick", "-x")
    assert quick == {
        "sqlite: quick, faces": ["-m", "not slow", *FACES, "-x"],
        "sqlite: quick, the rest": [
            "-m", "not slow", "tests", *(f"--ignore={each}" for each in FACES), "-x",
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        ["tests/test_demo.py"],
        ["-x", "tests/test_demo.py::test_name[a/b::c]"],
        ["-m", "not slow"],
        ["-k", "tests"],
        ["-kpayload"],
    ],
)
def test_chosen_tests_are_run_by_one_pytest_a_database(arguments: list[str]) -> None:
    assert described(*arguments) == {"sqlite": arguments, "postgresql": arguments}


@pytest.mark.parametrize("arguments", [["--maxfail", "2"], ["-W", "tests"], ["--lf"]])
def test_options_and_their_values_choose_no_tests(arguments: list[str]) -> None:
    assert len(described(*arguments)) == 12


def test_a_server_of_somebody_else_holds_one_test_database_and_gets_one_pytest() -> None:
    titles = list(described(TASKQUEUE_TEST_DATABASE_URL="postgresql://localhost/shop"))
    assert titles == [
        "sqlite: the patient",
        "sqlite: tests/worker",
        "postgresql",
        "sqlite: the rest",
        "sqlite: tests/browser",
        "sqlite: faces",
        "sqlite: tests/api",
    ]


def test_no_two_parts_share_a_cache() -> None:
    caches = [argument for part in parts([], {}) for argument in part.command() if "=." in argument]
    assert len(set(caches)) == 12


def test_of_what_computes_the_longest_is_begun_first() -> None:
    titles = [part.title for part in parts([], {}) if part.computes]
    assert titles == [
        "sqlite: the rest",
        "postgresql: the rest",
        "sqlite: tests/browser",
        "sqlite: faces",
        "sqlite: tests/api",
        "postgresql: tests/browser",
        "postgresql: faces",
        "postgresql: tests/api",
    ]


def test_parts_that_wait_begin_before_parts_that_compute() -> None:
    computes = [part.computes for part in parts([], {})]
    assert computes == sorted(computes)
    assert sum(computes) == 8
    assert {part.computes for part in parts(["--quick"], {})} == {False}


@pytest.mark.parametrize(
    ("arguments", "code", "is_passed"),
    [
        ([], 0, True),
        ([], 1, False),
        ([], -9, False),
        ([], NOTHING_COLLECTED, False),
        (["-m", "not slow"], NOTHING_COLLECTED, False),
        (["tests/test_demo.py"], NOTHING_COLLECTED, True),
        (["tests/test_demo.py"], 1, False),
    ],
)
def test_a_part_that_ran_nothing_has_failed_unless_it_was_told_which_files(
    arguments: list[str], code: int, is_passed: bool
) -> None:
    found: list[Part] = parts(arguments, {})
    assert {part.is_passed(code) for part in found} == {is_passed}


def test_tests_are_shared_out_where_all_are_run_and_not_where_some_are_chosen() -> None:
    def shared_out(*arguments: str, **environment: str) -> set[bool]:
        return {part.is_shared_out for part in parts(arguments, environment)}

    assert shared_out() == shared_out("-x") == {True}
    assert shared_out("-m", "slow") == shared_out("tests/test_demo.py") == {False}
    assert shared_out("--quick") == shared_out(TASKQUEUE_FULL="1") == {False}


@pytest.mark.slow
def test_shared_out_tests_run_on_one_database_or_the_other() -> None:
    chosen = ["tests/worker/test_pools.py", "tests/admin/test_admin.py", "tests/tracing"]
    every, sqlite, postgresql = (
        collected(database, shared_out, *chosen)
        for database, shared_out in (("sqlite", "0"), ("sqlite", "1"), ("postgresql", "1"))
    )
    assert sqlite | postgresql == every
    both = {name for name in sqlite & postgresql if "_only" not in name}
    assert len(sqlite) > len(every) / 3
    assert len(postgresql) > len(every) / 4
    assert len(both) < len(every) / 4


def test_two_seeds_in_a_row_run_all_races_on_postgresql() -> None:
    races = "tests/test_capacity_races.py"
    by_seed = [collected("postgresql", "1", races, seed=str(seed)) for seed in (6, 7)]
    assert set.union(*by_seed) == collected("postgresql", "0", races)
    assert not set.intersection(*by_seed)


def collected(database: str, shared_out: str, *chosen: str, seed: str = "1") -> set[str]:
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", *chosen],
        env={
            **os.environ,
            "TASKQUEUE_TEST_DATABASE": database,
            "TASKQUEUE_TEST_SHARED_OUT": shared_out,
            "TASKQUEUE_TEST_SEED": seed,
        },
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return {line for line in ended.stdout.splitlines() if "::" in line}
