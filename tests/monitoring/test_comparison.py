"""How names run beside the time before, and when versions of the project came."""

from __future__ import annotations

from datetime import timedelta

import pytest

from taskqueue.models import Rollup, Worker
from taskqueue.monitoring.comparison import Compared, compared, compared_since, deploys
from tests.monitoring.rows import HOUR, MINUTE, ago, make_rollup

pytestmark = pytest.mark.django_db


def only(found: list[Compared]) -> Compared:
    (one,) = found
    return one


def test_a_span_is_compared_with_the_span_before_it() -> None:
    make_rollup(ago(90 * MINUTE), succeeded=10, run=[1.0] * 10)
    make_rollup(ago(MINUTE), succeeded=15, failed=5, run=[2.0] * 20)
    make_rollup(ago(3 * HOUR), succeeded=99, run=[9.0] * 99)
    found = only(compared("hour"))
    assert (found.count, found.before_count) == (20, 10)
    assert found.run_p50_change == pytest.approx(1.0, rel=0.01)
    assert found.run_p95_change == pytest.approx(1.0, rel=0.01)
    assert found.failure_change == 0.25


def test_a_moment_is_compared_with_as_long_a_time_before_it() -> None:
    make_rollup(ago(70 * MINUTE), succeeded=10, run=[9.0] * 10)
    make_rollup(ago(50 * MINUTE), succeeded=10, run=[1.0] * 10)
    make_rollup(ago(10 * MINUTE), succeeded=10, run=[4.0] * 10)
    found = only(compared_since(ago(30 * MINUTE)))
    assert (found.count, found.before_count) == (10, 10)
    assert found.run_p50_change == pytest.approx(3.0, rel=0.01)


def test_few_attempts_tell_of_no_change() -> None:
    make_rollup(ago(90 * MINUTE), succeeded=4, run=[1.0] * 4)
    make_rollup(ago(MINUTE), succeeded=20, run=[2.0] * 20)
    found = only(compared("hour"))
    assert (found.before_count, found.run_p50_change, found.failure_change) == (4, None, None)


def test_the_span_before_is_read_once() -> None:
    make_rollup(ago(90 * MINUTE), succeeded=10, run=[1.0] * 10)
    make_rollup(ago(MINUTE), succeeded=10, run=[2.0] * 10)
    assert only(compared("day")).before_count == 0
    make_rollup(ago(timedelta(hours=36)), succeeded=9)
    assert only(compared("day")).before_count == 0
    Rollup.objects.filter(starts_at__lt=ago(HOUR)).delete()
    assert only(compared("hour")).count == 10


def test_a_version_begins_with_its_first_worker() -> None:
    for number, (version, minutes) in enumerate([("1", 90), ("2", 20), ("2", 30), ("", 5)]):
        versions = {"project": version} if version else {"python": "3.13"}
        Worker.objects.create(
            name=f"w{number}", host="h", pid=number, versions=versions, seen_at=ago(MINUTE),
            started_at=ago(minutes * MINUTE),
        )  # fmt: skip
    assert [deploy.version for deploy in deploys()] == ["2", "1"]
    assert deploys()[0].at == Worker.objects.get(name="w2").started_at
