"""The options of a task: each is declared once, with everything that interfaces need.

From a declaration come the check and normal form, the forms in JSON and text, the field of REST
requests, the field of the admin's forms, the column or snapshot key in which a task carries it,
and whether it can be changed after the enqueue. Those of calls are in `run_options`, `key_options`
and `limit_options`, those that belong to the definition alone are here.
"""

# ruff: noqa: RUF009  (each call gives a dataclass field)
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from taskqueue.core.refusals import refusal
from taskqueue.core.suggestions import hint_of, nearest_option
from taskqueue.declarations.admission import Admission
from taskqueue.declarations.batch import Batch, check_batch
from taskqueue.declarations.key_options import KeyOptions
from taskqueue.declarations.limit_options import LimitOptions
from taskqueue.declarations.limits import Limits
from taskqueue.declarations.names import DEFINITION_NAME
from taskqueue.declarations.notify import Notify, check_notify
from taskqueue.declarations.option import Option, Use, option
from taskqueue.declarations.option import gettext_noop as _
from taskqueue.declarations.option_kinds import Checked, Choice, Name, Switch, Whole
from taskqueue.declarations.run_options import RunOptions
from taskqueue.exceptions import InvalidTask

if TYPE_CHECKING:
    from taskqueue.declarations.scheduled import Scheduled

MOST_PER_SLOT = 1000


def check_sensitive(name: str, value: Any) -> frozenset[str]:
    """Return the names of arguments that are redacted. Raises `InvalidTask`."""
    names = (value,) if isinstance(value, str) or not hasattr(value, "__iter__") else tuple(value)
    if not all(isinstance(item, str) for item in names):
        raise InvalidTask(f"{name} must hold names of arguments, not {value!r}.")
    return frozenset(names)


def check_schedule(name: str, value: Any) -> tuple[Scheduled, ...]:
    """Return the schedules; system checks report their errors."""
    from taskqueue.declarations.scheduled import scheduled_of  # With the rules: few tasks have one.

    return scheduled_of(value)


@dataclass(frozen=True, kw_only=True)
class Options(LimitOptions, KeyOptions, RunOptions):
    """All options of a task; None means the project's setting, or no value.

    The fields of the last base come first.
    """

    name: str = option(Name(DEFINITION_NAME, 255), Use.TASK, "")
    takes_context: bool = option(Switch(), Use.TASK, default=False, label=_("Is given its context"))
    api: bool = option(Switch(), Use.TASK, default=False, label=_("Enqueued over REST"))
    sensitive: frozenset[str] = option(
        Checked(check_sensitive), Use.TASK, frozenset(), label=_("Sensitive arguments")
    )
    atomic: bool = option(Switch(), Use.TASK, default=False, label=_("Atomic"))
    per_slot: int = option(
        Whole(1, MOST_PER_SLOT), Use.TASK, default=1, label=_("Bodies at once in a slot")
    )
    pool: str | None = option(Choice((None, "process", "thread")), Use.TASK, label=_("Pool"))
    batch: Batch | None = option(Checked(check_batch), Use.TASK, label=_("Batch"))
    notify: Notify | None = option(Checked(check_notify), Use.TASK)
    schedule: tuple[Scheduled, ...] = option(Checked(check_schedule), Use.TASK, ())

    @property
    def limits(self) -> Limits:
        """Return all that limits its tasks."""
        return Limits(
            concurrency=self.concurrency,
            rate=self.rate,
            cost=self.cost,
            fair=self.fair,
            sequence=self.sequence,
            requires=self.requires,
            sensitive=self.sensitive,
        )

    @property
    def admission(self) -> Admission | None:
        """Return which of its calls become tasks; None: all, but for a unique key."""
        return self.debounce or self.throttle or self.capacity

    @property
    def has_key(self) -> bool:
        """Return whether its tasks hold a unique key, of their own or for their admission."""
        return self.unique_key is not None or self.admission is not None


OPTIONS: dict[str, Option] = {
    field.name: replace(field.metadata["option"], name=field.name) for field in fields(Options)
}
COLUMNS = tuple(option for option in OPTIONS.values() if option.carried == "column")
SNAPSHOT = tuple(option for option in OPTIONS.values() if option.carried == "snapshot")


def options_for(use: Use) -> dict[str, Option]:
    """Return the options that can be given there, by name."""
    return {name: option for name, option in OPTIONS.items() if use in option.use}


_DECLARED, _USED = options_for(Use.TASK), options_for(Use.USING)


def check_options(raw: Mapping[str, Any], *, declared: bool) -> dict[str, Any]:
    """Return options of `@task` (`declared`) or `.using` in their normal form.

    Raises `InvalidTask` with the remedy.
    """
    allowed = _DECLARED if declared else _USED
    checked = {}
    for name, value in raw.items():
        if name not in allowed:
            raise InvalidTask(_not_allowed(name, allowed))
        checked[name] = allowed[name].check(value)
    return checked


def _not_allowed(name: str, allowed: Mapping[str, Option]) -> str:
    if name in OPTIONS and name not in _DECLARED:
        return refusal(
            _(
                "{name} cannot be defined statically with the @task decorator. "
                "Use .using({name}=...) to set it dynamically."
            ),
            name=name,
        )
    if name in OPTIONS:
        return refusal(
            _("{name} belongs to the definition: set it in @task({name}=...)."), name=name
        )
    near = nearest_option(name, OPTIONS)
    is_other = bool(near) and near not in allowed
    hint = hint_of("", _not_allowed(near, allowed)) if is_other else hint_of(near)
    return refusal(_("There is no option {name!r}.{hint}"), name=name, hint=hint)


def options_from_json(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return options in JSON or text as `.using()` takes them. Raises `InvalidTask`.

    Values of Python stay as they are; `.using()` checks names and values.
    """
    return {
        name: OPTIONS[name].kind.parse(name, value) if name in OPTIONS else value
        for name, value in raw.items()
    }
