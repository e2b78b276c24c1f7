"""`manage.py demo` from outside: real processes on a folder of its own."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.cookiejar import CookieJar
from pathlib import Path
from typing import IO
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

import psutil
import pytest
from django import utils

import taskqueue
from project import postgres
from tests.sharing_out import DATABASE
from tests.worker_process import ROOT, wait_until

pytestmark = pytest.mark.slow

DATABASE_OPTIONS = {"sqlite": [], "postgresql": ["--postgres"]}[DATABASE]
PASSWORD = "taskqueue-demo"
SOURCES = Path(taskqueue.__file__).parent
FEW_SOURCES = SOURCES / "rules"
# Seconds. A demo gives its worker 45 to end, its web server 45, PostgreSQL 30.
STARTING, ENDING = 180, 200

StartDemo = Callable[..., "Demo"]


class Demo:
    """A demo in a process of its own, and what it has printed so far."""

    def __init__(
        self, *arguments: str, port: int, directory: Path, sources: Path, output: IO[bytes]
    ) -> None:
        self.port = port
        self.address = f"http://127.0.0.1:{port}"
        self.directory = directory
        self._output = Path(output.name)
        self._process = psutil.Popen(
            [
                *(sys.executable, str(ROOT / "manage.py"), "demo", *DATABASE_OPTIONS),
                *("--port", str(port), "--worker-concurrency", "2", *arguments),
            ],
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "project.settings",
                "TASKQUEUE_DEMO_DIRECTORY": str(directory),
                "TASKQUEUE_DEMO_SOURCES": str(sources),
                "PYTHONUNBUFFERED": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def output(self) -> str:
        return self._output.read_text()

    def wait(self) -> int:
        return int(self._process.wait(ENDING))

    def wait_until_done(self) -> None:
        """Return once it has done its work and stays up."""
        wait_until(lambda: "Press Ctrl-C" in self.output() or not self.is_running(), STARTING)
        assert self.is_running(), self.output()

    def is_running(self) -> bool:
        return self._process.poll() is None

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def kill_worker(self) -> None:
        [worker] = [each for each in self._process.children() if "runworker" in each.cmdline()]
        worker.kill()

    def destroy(self) -> None:
        """End it as a service manager would, so that it ends what it has started."""
        if self.is_running():
            self._process.terminate()
            self._process.wait(ENDING)

    def answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture
def start_demo(tmp_path: Path) -> Iterator[StartDemo]:
    """Start a demo: `start_demo("--exit", "--root", folder)`. It does not outlive the test.

    Its workflow reads `sources`: few files, for it takes most of the time.
    """
    demos: list[Demo] = []
    directory = tmp_path / "state"

    def start(*arguments: str | Path, sources: Path = FEW_SOURCES) -> Demo:
        with (tmp_path / f"output-{len(demos)}").open("wb") as output:
            texts = [str(argument) for argument in arguments]
            port = _free_port()
            demos.append(
                Demo(*texts, port=port, directory=directory, sources=sources, output=output)
            )
        return demos[-1]

    yield start
    for demo in demos:
        demo.destroy()
        print(demo.output())  # pytest shows it when the test has failed.
    if (data := directory / "postgres").is_symlink():
        shutil.rmtree(data.resolve())


def test_its_time_limit_is_a_duration_as_everywhere() -> None:
    settings = "--settings=project.settings"
    command = [sys.executable, str(ROOT / "manage.py"), "demo", settings, "--timeout"]
    refused = subprocess.run([*command, "soon"], capture_output=True, text=True, cwd=ROOT)
    assert refused.returncode == 2
    assert "'soon' is not a duration: write 90, 90s" in refused.stderr
    told = subprocess.run([*command, "5m", "--help"], capture_output=True, text=True, cwd=ROOT)
    assert told.returncode == 0, told.stderr


def test_the_demo_reads_every_file_and_ends_by_itself(start_demo: StartDemo) -> None:
    folder = Path(utils.__file__).parent
    demo = start_demo("--exit", "--root", folder, sources=SOURCES)

    assert demo.wait() == 0, demo.output()

    files = [path for path in folder.rglob("*") if path.suffix == ".py"]
    lines = sum(len(path.read_text().split("\n")) - 1 for path in files)
    rows = [line.split() for line in demo.output().splitlines()]
    assert ["all", f"{len(files):,}", f"{lines:,}"] in [row[:3] for row in rows]
    assert "project.tasks.stumble: succeeded at attempt 2" in demo.output()
    assert "schedule take-stock (every 10 seconds): " in demo.output()
    number, table = most_imported()
    assert f"succeeded, {number} files, one task a file, in " in demo.output()
    assert table == [row for row in rows if row in table]
    assert f"{demo.address}/admin/taskqueue/dashboard/" in demo.output()
    assert PASSWORD in demo.output()
    assert not demo.answers()


def most_imported() -> tuple[int, list[list[str]]]:
    """How many files taskqueue has, and the rows of the table of what they import most."""
    paths = list(SOURCES.rglob("*.py"))
    counts: Counter[str] = Counter()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                counts.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                counts[str(node.module)] += 1
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:10]
    return len(paths), [[name, f"{number:,}", f"{number:,}"] for name, number in most]


def test_a_file_that_no_task_can_read_fails_the_demo(start_demo: StartDemo, tmp_path: Path) -> None:
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "good.py").write_text("import os\n")
    (folder / "broken.py").write_text("def broken(:\n")
    demo = start_demo("--exit", "--root", folder)

    assert demo.wait() == 1

    assert "broken.py failed: builtins.SyntaxError" in demo.output()
    assert "1 of 2 files were not recorded: broken.py" in demo.output()
    assert not demo.answers()


def test_the_demo_stays_up_until_it_is_interrupted(start_demo: StartDemo, tmp_path: Path) -> None:
    demo = start_demo("--root", _small_folder(tmp_path))
    demo.wait_until_done()
    browser = Browser(demo.address)

    assert "small.py" in browser.get("/")
    assert "Site administration" in browser.log_in("admin", PASSWORD)
    assert "project.tasks.imported_by" in browser.get("/admin/taskqueue/task/")
    found = browser.get("/admin/taskqueue/task/?q=name:project.tasks.stumble")
    assert len(set(re.findall(r"/admin/taskqueue/task/([0-9a-f-]{36})/change/", found))) == 1
    assert "take-stock" in browser.get("/admin/taskqueue/dashboard/")
    assert "small.py" in browser.get("/admin/project/sourcefile/")
    assert "take-stock: Every 10 seconds" in browser.get("/")
    assert "take-stock" in browser.get("/admin/taskqueue/schedule/")
    assert "project.tasks.most_imported" in browser.get("/")
    assert "swagger-ui" in browser.get("/api/v1/docs/")
    watched_export(browser)

    second = start_demo("--exit", "--root", _small_folder(tmp_path))
    assert second.wait() == 1
    assert "A demo already runs in" in second.output()
    assert "small.py" in browser.get("/")

    demo.interrupt()
    assert demo.wait() == 0, demo.output()
    assert not demo.answers()


def test_a_worker_that_dies_ends_the_demo(start_demo: StartDemo, tmp_path: Path) -> None:
    demo = start_demo("--root", _small_folder(tmp_path))
    demo.wait_until_done()

    demo.kill_worker()

    assert demo.wait() == 1
    assert "The worker ended early, with exit code -9" in demo.output()
    assert str(demo.directory / "worker.log") in demo.output()
    assert not demo.answers()


class Browser:
    """Keeps cookies, and knows how to log in."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._cookies = CookieJar()
        self._opener = build_opener(ProxyHandler({}), HTTPCookieProcessor(self._cookies))

    def get(self, path: str, form: bytes | None = None) -> str:
        """Return the page; anything but a good answer is an error."""
        with self._opener.open(self._address + path, form, timeout=60) as response:
            return str(response.read().decode())

    def log_in(self, username: str, password: str) -> str:
        """Return the page that comes after the login."""
        self.get("/admin/login/")
        [token] = [cookie.value for cookie in self._cookies if cookie.name == "csrftoken"]
        form = {
            "username": username,
            "password": password,
            "csrfmiddlewaretoken": token,
            "next": "/admin/",
        }
        return self.get("/admin/login/", urlencode(form).encode())


def watched_export(browser: Browser) -> None:
    """Let an end user begin an export, and watch it to its end."""
    hidden = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get("/export/"))
    assert hidden is not None
    page = browser.get("/export/", urlencode({"csrfmiddlewaretoken": hidden[1]}).encode())
    address = re.search(r'data-taskqueue-progress="([^"]+)"', page)
    assert address is not None
    look = address[1]

    def has_succeeded() -> bool:
        try:
            return '"succeeded"' in browser.get(look)
        except HTTPError as error:
            if error.code != HTTPStatus.TOO_MANY_REQUESTS:
                raise
            return False

    wait_until(has_succeeded, STARTING)


def _small_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "sources"
    folder.mkdir(exist_ok=True)
    (folder / "small.py").write_text("import os\n")
    return folder


def _free_port() -> int:
    """One that the kernel hands to nobody meanwhile, unlike those that it chooses itself."""
    return postgres._free_port()


def test_make_runs_the_demo_on_its_own_settings_whatever_the_shell_exports() -> None:
    # A make that runs these tests hands its own flags on, and would have this one talk.
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = subprocess.check_output(
        ["make", "--dry-run", "--old-file=.venv/.ready", "demo", "ARGS=--help"],
        cwd=ROOT,
        env=own,
        text=True,
    )
    answer = subprocess.run(
        command.replace(".venv/bin/python", sys.executable),
        shell=True,
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "no.such.settings"},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    assert "--worker-concurrency" in answer.stdout
