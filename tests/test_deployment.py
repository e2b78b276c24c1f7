"""The examples of docs/deployment are well formed, and say what workers understand."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import load_command_class
from django.test import Client, override_settings
from django.urls import resolve

from taskqueue.conf import Settings
from tests.conftest import require_tool
from tests.worker_process import ROOT

PAGE = ROOT / "docs" / "deployment.md"
EXAMPLES = ROOT / "docs" / "deployment"
UNITS = sorted((EXAMPLES / "systemd").glob("*.service"))
MANIFESTS = sorted((EXAMPLES / "kubernetes").glob("*.yaml"))
SHUTDOWN_SECONDS = Settings.SHUTDOWN_TIMEOUT.total_seconds()
TOKEN = "t" * 32
RESERVE = 10
"""Seconds, at least, that a worker has left to sign off in."""


def unit(path: Path) -> configparser.ConfigParser:
    # Some keys stand twice, such as EnvironmentFile.
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read(path)
    return parser


def manifests(kind: str = "") -> list[dict[str, Any]]:
    found = [each for path in MANIFESTS for each in yaml.safe_load_all(path.read_text())]
    return [each for each in found if kind in ("", each["kind"])]


def deployment(name: str) -> dict[str, Any]:
    [found] = [each for each in manifests("Deployment") if each["metadata"]["name"] == name]
    return found


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / "docker" / "compose.yaml").read_text())
    return found


def docker_instructions(name: str) -> list[str]:
    text = (EXAMPLES / "docker" / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.split(maxsplit=1)[1] for line in text.splitlines() if line.startswith(f"{name} ")]


def commands() -> Iterator[list[str]]:
    """Everything after manage.py, wherever an example says it."""
    for path in UNITS:
        line = unit(path)["Service"]["ExecStart"].replace("%H-%i", "host-mail")
        [flags] = re.findall(r"^#\s+FLAGS=(.*)$", path.read_text(), re.M) or [""]
        yield shlex.split(line.replace("$FLAGS", flags))
    for service in compose()["services"].values():
        yield service.get("command", [])
        yield service.get("healthcheck", {}).get("test", [])
    for instruction in docker_instructions("CMD"):
        yield json.loads(instruction)
    [check] = docker_instructions("HEALTHCHECK")
    yield json.loads(check[check.index("[") :])
    for each in manifests():
        for container in containers_of(each):
            yield [*container.get("command", []), *container.get("args", [])]


def containers_of(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    template = manifest.get("spec", {}).get("template", {})
    return template.get("spec", {}).get("containers", [])


def managed() -> list[list[str]]:
    return [each[each.index("manage.py") + 1 :] for each in commands() if "manage.py" in each]


def test_every_command_of_an_example_is_understood() -> None:
    found = managed()
    assert {each[0] for each in found} == {"runworker", "taskqueue", "migrate"}
    for name, *flags in found:
        app = "django.core" if name == "migrate" else "taskqueue"
        parser = load_command_class(app, name).create_parser("manage.py", name)
        parser.parse_args(flags)  # Raises CommandError for what it does not know.


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_are_what_systemd_reads(path: Path, tmp_path: Path) -> None:
    program = require_tool("systemd-analyze")
    # What it starts has to be there; it is a template, which wants an instance.
    text = path.read_text().replace("/srv/shop/venv/bin/python", sys.executable)
    instance = tmp_path / path.name.replace("@.", "@mail.")
    instance.write_text(text)
    ended = subprocess.run(
        [program, "verify", "--man=no", "--recursive-errors=no", str(instance)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout + ended.stderr) == (0, "")


def test_a_worker_is_given_longer_to_end_than_it_takes() -> None:
    [worker] = [unit(path)["Service"] for path in UNITS if path.name.startswith("taskqueue")]
    assert worker["KillMode"] == "mixed"
    pod = deployment("shop-worker")["spec"]["template"]["spec"]
    graces = [
        float(worker["TimeoutStopSec"]),
        float(compose()["services"]["worker"]["stop_grace_period"].removesuffix("s")),
        float(pod["terminationGracePeriodSeconds"]),
    ]
    assert min(graces) >= SHUTDOWN_SECONDS + RESERVE
    assert docker_instructions("STOPSIGNAL") == ["SIGTERM"]


def test_the_image_runs_its_commands_without_a_shell_and_not_as_root() -> None:
    for name in ("ENTRYPOINT", "CMD"):
        for instruction in docker_instructions(name):
            assert json.loads(instruction), instruction
    [user] = docker_instructions("USER")
    assert int(user) > 0
    targets = {line.split()[-1] for line in docker_instructions("FROM")}
    services = compose()["services"].values()
    assert {each["build"]["target"] for each in services if "build" in each} <= targets


def test_a_service_waits_until_those_it_depends_on_are_healthy() -> None:
    services = compose()["services"]
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            is_done = how["condition"] == "service_completed_successfully"
            assert is_done or "test" in services[other]["healthcheck"], (name, other)


@pytest.mark.parametrize("each", manifests(), ids=lambda each: each["kind"])
def test_manifests_name_each_other_rightly(each: dict[str, Any]) -> None:
    labels = [
        manifest["spec"]["template"]["metadata"]["labels"] for manifest in manifests("Deployment")
    ]
    selector = each.get("spec", {}).get("selector", {})
    if wanted := selector.get("matchLabels", selector):
        assert [each for each in labels if wanted.items() <= each.items()]
    if target := each.get("spec", {}).get("scaleTargetRef"):
        assert deployment(target["name"])
    for path in each.get("resources", []):
        assert (EXAMPLES / "kubernetes" / path).is_file()


def test_probes_ask_what_is_answered() -> None:
    web = [*probes_of("shop-web")]
    assert {name for name, _ in web} == {"http"}
    for _, path in web:
        assert resolve(path).url_name in ("live", "ready")
    assert {*probes_of("shop-worker")} == {("health", "/live"), ("health", "/ready")}
    [container] = containers_of(deployment("shop-worker"))
    [health] = [each for each in container["args"] if each.startswith("--health-port=")]
    [port] = container["ports"]
    assert (health, port["name"]) == (f"--health-port=0.0.0.0:{port['containerPort']}", "health")


def settings_of_the_examples(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What docs/deployment.md wants in shop/settings.py, in a pod."""
    [container] = containers_of(deployment("shop-web"))
    given = {"POD_IP": "10.1.2.3", "METRICS_TOKEN": TOKEN}
    assert given.keys() == {each["name"] for each in container["env"]}
    for name, text in {**given, "SECRET_KEY": "k" * 50}.items():
        monkeypatch.setenv(name, text)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    [lines] = [block for block in blocks if "SECRET_KEY" in block]
    values: dict[str, Any] = {"BASE_DIR": Path("/srv/shop")}
    exec(lines, values)
    return {name: value for name, value in values.items() if name.isupper()}


@pytest.mark.django_db
def test_with_the_settings_of_the_examples_probes_and_prometheus_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endpoints = manifests("ServiceMonitor")[0]["spec"]["endpoints"]
    [probe] = [
        each["httpGet"]
        for each in containers_of(deployment("shop-web"))[0].values()
        if isinstance(each, dict) and "ready" in each.get("httpGet", {}).get("path", "")
    ]
    sent = {each["name"]: each["value"] for each in probe["httpHeaders"]}
    bearer = f"{endpoints[0]['authorization']['type']} {TOKEN}"
    security = "django.middleware.security.SecurityMiddleware"
    values = settings_of_the_examples(monkeypatch)
    with override_settings(**{**values, "MIDDLEWARE": [security, *settings.MIDDLEWARE]}):
        asked = [
            Client().get(probe["path"], headers=sent),
            Client().get(
                endpoints[0]["path"], headers={"Host": "10.1.2.3:8000", "Authorization": bearer}
            ),
            Client().get(probe["path"], headers={"Host": "10.1.2.3:8000"}),
        ]
    assert [each.status_code for each in asked] == [200, 200, 301]


@pytest.mark.slow
@pytest.mark.parametrize(("status", "code"), [(200, 0), (301, 1), (400, 1), (503, 1)])
def test_the_check_of_compose_takes_nothing_but_200_for_healthy(status: int, code: int) -> None:
    heard: list[Any] = []

    class Web(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append((self.path, self.headers["Host"], self.headers["X-Forwarded-Proto"]))
            self.send_response(status)
            self.send_header("Location", "/api/v1/healthz/live")
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    _, _, flag, script = compose()["services"]["web"]["healthcheck"]["test"]
    with HTTPServer(("127.0.0.1", 0), Web) as server:
        answering = Thread(target=server.handle_request)
        answering.start()
        script = script.replace("8000", str(server.server_port)).replace("localhost", "127.0.0.1")
        # How soon this thread gets to answer says how busy the machine is.
        script = script.replace("timeout=5", "timeout=60")
        ended = subprocess.run([sys.executable, flag, script], timeout=120)
        answering.join()
    assert ended.returncode == code
    assert heard == [("/api/v1/healthz/ready", "shop.example.com", "https")]


def probes_of(name: str) -> Iterator[tuple[str, str]]:
    [container] = containers_of(deployment(name))
    for key, probe in container.items():
        if key.endswith("Probe"):
            yield probe["httpGet"]["port"], probe["httpGet"]["path"]
