"""The options of `run_due`, `run_next` and `eager`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self, TypedDict, get_args

from taskqueue.core.suggestions import did_you_mean_option
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.options import OPTIONS

Errors = Literal["record", "raise"]
Backoff = Literal["keep", "skip"]
# A definition, a task of Django's framework, or the name of either.
Which = Any


class Options(TypedDict, total=False):
    """The keywords of `run_due` and `run_next`."""

    # Only tasks of this queue.
    queue_name: str
    # The names of the simulated workers; there are no others.
    workers: Sequence[str]
    # `record` keeps exceptions of bodies in results only; `raise` also raises them here.
    errors: Errors
    # `keep` leaves retries until they are due; `skip` makes them due at once.
    backoff: Backoff
    # The number of attempts after which `StillDue` is raised.
    limit: int


@dataclass(frozen=True)
class Choice:
    """The options, checked."""

    names: tuple[str, ...] = ()
    _: KW_ONLY
    queue_name: str | None = None
    workers: Sequence[str] | None = None
    errors: Errors = "record"
    backoff: Backoff = "keep"
    limit: int = 1000

    @classmethod
    def of(cls, tasks: Sequence[Which], options: Options) -> Self:
        """Return the checked options. Raises `UnknownTask`, TypeError or ValueError."""
        check_names(options, Options.__annotations__)
        return cls(tuple(definition_of(task).name for task in tasks), **options)

    def __post_init__(self) -> None:
        check_among("errors", self.errors, get_args(Errors))
        check_among("backoff", self.backoff, get_args(Backoff))
        if type(self.limit) is not int or self.limit < 1:
            raise ValueError(f"limit must be a whole number of 1 or more, not {self.limit!r}.")
        if self.queue_name is not None:
            OPTIONS["queue_name"].check(self.queue_name)
        if isinstance(self.workers, str) or (self.workers is not None and not self.workers):
            raise ValueError(f"workers must be a list of names, not {self.workers!r}.")


def check_names(names: Collection[str], known: Collection[str]) -> None:
    """Raise TypeError for a keyword that the caller's function does not have."""
    for name in names:
        if name not in known:
            hint = did_you_mean_option(name, known, otherwise=f"Choose from {', '.join(known)}.")
            raise TypeError(f"There is no option {name!r}.{hint}")


def check_among(what: str, value: object, choices: Sequence[str]) -> None:
    """Raise ValueError unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{what} must be {' or '.join(map(repr, choices))}, not {value!r}.")


def definition_of(which: Which) -> BaseDefinition[Any, Any]:
    """Return the definition. Raises `UnknownTask` with the nearest name, or TypeError."""
    if isinstance(which, BaseDefinition):
        return which
    name = which if isinstance(which, str) else getattr(which, "module_path", None)
    if not isinstance(name, str):
        raise TypeError(f"Pass a task or the name of one, not {which!r}.")
    return registry.get(name)
