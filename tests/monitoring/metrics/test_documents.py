"""The dashboard, the alerts and the configuration in the documentation fit what there is."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.urls import reverse

from taskqueue.monitoring.metrics import exposition
from taskqueue.worker.meter import Meter
from taskqueue.worker.metrics import route
from tests.conftest import require_tool

DOCUMENTS = Path(__file__).parents[3] / "docs" / "metrics"
SCALING = DOCUMENTS.parent / "deployment" / "kubernetes" / "scaling.yaml"
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}

pytestmark = pytest.mark.django_db


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCUMENTS / "grafana-dashboard.json").read_text())
    return found


def expressions() -> Iterator[str]:
    """All that the dashboard asks."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    for variable in dashboard()["templating"]["list"]:
        yield variable.get("definition", "")


def offered() -> set[str]:
    """The names of all samples that the two pages may hold."""
    pages = exposition()[0].decode() + route(Meter()).body.decode()
    return {
        name + suffix
        for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", pages, re.MULTILINE)
        for suffix in SUFFIXES.get(kind, ("",))
    }


def named(text: str) -> set[str]:
    return set(re.findall(r"\btaskqueue_\w+", text))


def test_every_metric_of_the_dashboard_the_alerts_and_the_pages_exists() -> None:
    alerts = (DOCUMENTS / "alerts.yml").read_text()
    assert named("\n".join(expressions())) - offered() == set()
    assert named(alerts) - offered() == set()
    assert len(named(alerts)) > 10
    page = (DOCUMENTS.parent / "metrics.md").read_text()
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in offered()}
    assert named(page) - offered() - families == set(), "in the page, not offered"
    assert families - named(page) == set(), "offered, not in the page"


def test_the_panels_of_the_dashboard_lie_beside_each_other() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_promtool_accepts_the_alerts_and_what_the_dashboard_asks(tmp_path: Path) -> None:
    promtool = require_tool("promtool")
    asked = tmp_path / "asked.yml"
    rules = [
        {"record": f"asked:{number}", "expr": _filled(expression)}
        for number, expression in enumerate(expressions())
        if expression and not expression.startswith("label_values")
    ]
    # JSON is YAML too.
    asked.write_text(json.dumps({"groups": [{"name": "asked", "rules": rules}]}))
    alerts = DOCUMENTS / "alerts.yml"
    check = [promtool, "check", "rules", "--lint-fatal", str(alerts), str(asked)]
    found = subprocess.run(check, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    promtool = require_tool("promtool")
    events = (Path(__file__).parent / "alerts.test.yml").read_text()
    path = tmp_path / "events.yml"
    [trigger] = yaml.safe_load(SCALING.read_text())["spec"]["triggers"]
    events = events.replace("ALERTS]", f"{DOCUMENTS / 'alerts.yml'}]")
    path.write_text(events.replace("SCALING", json.dumps(trigger["metadata"]["query"])))
    check = [promtool, "test", "rules", str(path)]
    found = subprocess.run(check, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stdout + found.stderr


def _filled(expression: str) -> str:
    return expression.replace("$queue", ".*").replace("$__rate_interval", "5m")


def test_promtool_accepts_the_configuration_and_its_path_is_that_of_the_api(
    tmp_path: Path,
) -> None:
    promtool = require_tool("promtool")
    for name in ("prometheus.yml", "alerts.yml"):
        (tmp_path / name).write_text((DOCUMENTS / name).read_text())
    (tmp_path / "taskqueue-token").write_text("secret")
    check = [promtool, "check", "config", str(tmp_path / "prometheus.yml")]
    found = subprocess.run(check, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stdout + found.stderr
    path = reverse("taskqueue-api:metrics")
    assert f"metrics_path: {path}\n" in (DOCUMENTS / "prometheus.yml").read_text()
