"""The options of a task: what may stand in `@task(...)` and in `.using(...)`, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from taskqueue.core.retries import Backoff
from taskqueue.core.suggestions import nearest_option
from taskqueue.declarations.option_values import Moment, check_value
from taskqueue.declarations.scheduled import Scheduled, scheduled_of
from taskqueue.declarations.unique_keys import UniqueKey
from taskqueue.exceptions import Duration, InvalidTask


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Every option that a task can carry; None stands for the project's setting, or for none."""

    queue_name: str = "default"
    priority: int = 0
    run_after: Moment | None = None
    max_attempts: int | None = None
    backoff: Backoff | Callable[..., Duration] | None = None
    retry_for: tuple[type[BaseException], ...] | None = None
    give_up_on: tuple[type[BaseException], ...] = ()
    max_crashes: int | None = None
    crash_delay: timedelta | None = None
    timeout: timedelta | None = None
    deadline: Moment | None = None
    expires_after: timedelta | None = None
    unique_key: UniqueKey | None = None
    unique_scope: str | None = None
    unique_for: str | timedelta = "finished"
    on_duplicate: str = "return"
    restart: str | None = None
    workers: int = 1
    worker_names: tuple[str, ...] | None = None
    broadcast: bool = False
    lease_duration: timedelta | None = None
    ping_interval: timedelta | None = None
    retention: timedelta | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    name: str = ""
    takes_context: bool = False
    api: bool = False
    sensitive: frozenset[str] = frozenset()
    atomic: bool = False
    schedule: tuple[Scheduled, ...] = ()


NAMES = frozenset(option.name for option in fields(Options))
DEFINITION_ONLY = frozenset(
    {"name", "takes_context", "api", "sensitive", "atomic", "give_up_on", "schedule"}
)
USING_ONLY = frozenset({"run_after"})


def check_options(raw: Mapping[str, Any], *, declared: bool) -> dict[str, Any]:
    """The options in their normal form: what is `declared` in `@task`, else what `.using` takes.

    Raises `InvalidTask` with the remedy.
    """
    allowed = NAMES - USING_ONLY if declared else NAMES - DEFINITION_ONLY
    checked = {}
    for name, value in raw.items():
        if name not in allowed:
            raise InvalidTask(_not_allowed(name, allowed))
        # What is wrong with a schedule is for the system checks to say.
        checked[name] = scheduled_of(value) if name == "schedule" else check_value(name, value)
    return checked


def _not_allowed(name: str, allowed: frozenset[str]) -> str:
    if name in USING_ONLY:
        return (
            f"{name} cannot be defined statically with the @task decorator. "
            f"Use .using({name}=...) to set it dynamically."
        )
    if name in DEFINITION_ONLY:
        return f"{name} belongs to the definition: set it in @task({name}=...)."
    near = nearest_option(name, NAMES)
    if not near:
        return f"There is no option {name!r}."
    if near in allowed:
        return f"There is no option {name!r}. Did you mean {near!r}?"
    return f"There is no option {name!r}. {_not_allowed(near, allowed)}"


def check_together(options: Options, *, name: str) -> None:
    """Raise `InvalidTask` where options that are possible alone exclude each other."""
    ping, lease = options.ping_interval, options.lease_duration
    if ping is not None and lease is not None and ping * 3 > lease:
        raise InvalidTask(
            f"{name}: ping_interval must be at most a third of lease_duration, "
            "or one late ping loses the lease."
        )
    names = options.worker_names
    if options.broadcast and (options.workers > 1 or names is not None):
        raise InvalidTask(
            f"{name}: broadcast=True asks every worker alive on the queue; "
            "leave out workers and worker_names."
        )
    if names is not None and options.workers > len(names):
        raise InvalidTask(
            f"{name}: workers={options.workers} can never be reached by the {len(names)} in "
            "worker_names."
        )
    if options.restart is not None and options.unique_for != "kept":
        raise InvalidTask(f"{name}: restart={options.restart!r} needs unique_for='kept'.")
