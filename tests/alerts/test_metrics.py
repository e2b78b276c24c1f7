"""The number of firing alerts is a gauge for each rule."""

from __future__ import annotations

import pytest

from tests.alerts.steps import look_now, make_rule
from tests.monitoring.metrics.scraping import scrape, value
from tests.monitoring.rows import make_worker

pytestmark = pytest.mark.django_db


def test_alerts_that_fire_are_counted_by_their_rule() -> None:
    make_worker("w1", trouble="no disk")
    make_worker("w2", trouble="no memory")
    make_rule("in trouble")
    make_rule("quiet", kind="queue_depth")
    look_now()
    found = scrape()
    assert value(found, "alerts_firing", rule="in trouble") == 2
    assert value(found, "alerts_firing", rule="quiet") == 0
