"""Built-in tasks: a management command, an HTTP request, a program of the host.

Each is declared only if `TASKQUEUE["BUILTIN_TASKS"]` has an entry for it, and does only what these
entries allow, whoever enqueued it.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from io import StringIO
from typing import Any, Literal
from urllib.parse import unquote

from taskqueue.conf import get_settings
from taskqueue.declarations.context import AttemptContext
from taskqueue.definitions import define
from taskqueue.exceptions import GiveUp

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
# Characters of an output, or of an answer, that are kept as the result.
LONGEST_RESULT = 16 * 1024
# Seconds between two looks whether a program is to stop.
LOOK_EVERY = 0.5
# Seconds between two looks whether one has ended that has closed its output.
PAUSE = 0.02
READ_SIZE = 1 << 16
# A program gets these variables of the worker, and no secrets that the others hold.
ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
# Headers that determine the target and the length of a request.
FORBIDDEN_HEADERS = frozenset({"connection", "content-length", "host", "transfer-encoding"})
# Of an answer that another attempt may change.
PASSING_STATUSES = frozenset({408, 425, 429})


class ProgramFailed(Exception):
    """A program has ended with another exit code than 0."""


class RequestFailed(Exception):
    """A request has got no answer, or one that may be another next time."""


def command(*words: str) -> str:
    """Run a management command, such as `clearsessions`; its output is the result."""
    from django.core.management import call_command

    _require("command", words)
    output = StringIO()
    call_command(words[0], *words[1:], stdout=output, stderr=output, no_color=True)
    return output.getvalue()[-LONGEST_RESULT:]


def http(
    url: str,
    method: Method = "GET",
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Send a request; status and text of the answer are the result.

    `body` is text, or a value that is sent as JSON. An answer of 5xx, or none, is a failure that is
    retried; one of 3xx or 4xx is final, but for 408, 425 and 429.
    """
    from taskqueue.engine.webhooks.checking import allowed_targets
    from taskqueue.webhooks.client import NoAnswer, Refused, send

    if not any(_fits(url, pattern) for pattern in get_settings().BUILTIN_TASKS["http"]):
        raise GiveUp(_refusal("http", url))
    own = {str(name): str(value) for name, value in (headers or {}).items()}
    if wrong := sorted(name for name in own if name.lower() in FORBIDDEN_HEADERS):
        raise GiveUp(f"A request may not set the header {wrong[0]}.")
    data = b""
    if isinstance(body, str):
        data = body.encode()
    elif body is not None:
        data = json.dumps(body).encode()
        own.setdefault("Content-Type", "application/json")
    try:
        answer = send(method, url, data, own, allowed=allowed_targets())
    except Refused as error:
        raise GiveUp(str(error)) from None
    except NoAnswer as error:
        raise RequestFailed(str(error)) from None
    if 200 <= answer.status < 300:
        text = answer.body.decode(errors="replace")[:LONGEST_RESULT].replace("\x00", "\ufffd")
        return {"status": answer.status, "body": text}
    if answer.status >= 500 or answer.status in PASSING_STATUSES:
        raise RequestFailed(f"The server answered with {answer.status}.")
    raise GiveUp(f"The server answered with {answer.status}.")


def program(context: AttemptContext, *words: str) -> str:
    """Run a program with these arguments, without a shell; the end of its output is the result.

    Its lines are log lines of the attempt. Another exit code than 0 is a failure. When the attempt
    is stopped or its time is over, the program is killed with all that it has started.
    """
    _require("program", words)
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=environment, start_new_session=True,
    )  # fmt: skip
    try:
        output = _output_of(process, context)
        while not _has_ended(process):
            context.check()
            time.sleep(PAUSE)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        assert process.stdout is not None
        process.stdout.close()
    if code != 0:
        raise ProgramFailed(f"{words[0]} ended with exit code {code}: {output[-500:]}")
    return output


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether it has ended, without reaping it: its group keeps its number."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, flags) is not None


def _output_of(process: subprocess.Popen[bytes], context: AttemptContext) -> str:
    """Log the lines of a program until it has closed its output; return the end of that."""
    assert process.stdout is not None
    kept = rest = ""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            context.check()
            if not selector.select(LOOK_EVERY):
                continue
            data = os.read(process.stdout.fileno(), READ_SIZE)
            if not data:
                break
            text = data.decode(errors="replace").replace("\x00", "\ufffd")
            kept = (kept + text)[-LONGEST_RESULT:]
            *lines, rest = (rest + text).split("\n")
            rest = rest[-LONGEST_RESULT:]
            for line in lines:
                context.log(line)
    if rest:
        context.log(rest)
    return kept


def _require(kind: str, words: Sequence[str]) -> None:
    """Raise `GiveUp` unless the settings allow these words."""
    if not any(_allows(pattern, words) for pattern in get_settings().BUILTIN_TASKS[kind]):
        raise GiveUp(_refusal(kind, " ".join(map(str, words))))


def _allows(pattern: Sequence[str], words: Sequence[str]) -> bool:
    has_more = pattern[-1] == "**" and len(pattern) > 1
    known = pattern[:-1] if has_more else pattern
    if len(words) < len(known) or (len(words) > len(known) and not has_more):
        return False
    pairs = zip(known[1:], words[1:], strict=False)
    return words[0] == known[0] and all(_fits(word, own) for own, word in pairs)


def _fits(text: str, pattern: str) -> bool:
    """Return whether the pattern allows the text; its wildcards never match `..` of a path."""
    goes_up = ".." in re.split(r"[/\\?#=]", unquote(text))
    return fnmatchcase(text, pattern) and (".." in pattern or not goes_up)


def _refusal(kind: str, what: str) -> str:
    return f"No entry of TASKQUEUE['BUILTIN_TASKS'][{kind!r}] allows {what[:200]!r}."


# The bodies by their keys in the settings, with their options.
TASKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "command": (command, {"name": "builtin.command"}),
    "http": (http, {"name": "builtin.http", "sensitive": ["headers", "body"]}),
    "program": (program, {"name": "builtin.program", "takes_context": True}),
}


def declare() -> None:
    """Declare those that the settings allow something of."""
    allowed = get_settings().BUILTIN_TASKS
    for kind, (body, options) in TASKS.items():
        if allowed[kind]:
            define(body, options)
