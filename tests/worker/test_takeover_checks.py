"""Taking over on SQLite spares who only waited for the write lock."""

import pytest

from taskqueue.worker.takeover import (
    LONGEST_GAP,
    LONGEST_SUSPICION,
    LOOK_INTERVAL,
    SECOND_LOOK,
    TakeoverChecks,
)

LEASE = 6.0


def looks(checks: TakeoverChecks, times: list[float]) -> list[float]:
    """When the lease 7, expired all the time, would have been taken over."""
    return [now for now in times if checks.confirmed([7], now)]


def steps(start: float, count: int, interval: float = LOOK_INTERVAL) -> list[float]:
    return [start + (interval + 1e-9) * step for step in range(count)]


def test_a_lease_is_taken_over_when_it_stays_expired_while_others_could_write() -> None:
    taken = looks(TakeoverChecks(lease_seconds=LEASE), steps(100.0, 6))
    assert taken[0] == pytest.approx(100.0 + SECOND_LOOK)


def test_a_lock_held_between_two_looks_begins_the_wait_anew() -> None:
    checks = TakeoverChecks(lease_seconds=LEASE)
    assert looks(checks, steps(100.0, 4)) == []
    held = 100.0 + 3 * LOOK_INTERVAL + LONGEST_GAP + 0.1
    assert looks(checks, steps(held, 4)) == []
    assert looks(checks, [held + SECOND_LOOK]) == [held + SECOND_LOOK]


def test_a_lease_that_was_renewed_is_suspected_anew() -> None:
    checks = TakeoverChecks(lease_seconds=LEASE)
    assert looks(checks, steps(100.0, 4)) == []
    assert checks.confirmed([], 101.0) == set()
    assert not checks
    assert looks(checks, steps(101.2, 4)) == []


def test_a_lock_held_again_and_again_does_not_put_a_takeover_off_for_ever() -> None:
    checks = TakeoverChecks(lease_seconds=LEASE)
    taken = looks(checks, steps(100.0, 40, interval=1.0))
    assert taken[0] == pytest.approx(100.0 + LONGEST_SUSPICION * LEASE)
