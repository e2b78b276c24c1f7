"""What a request says of a task to be enqueued, checked as an enqueue in Python is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from taskqueue.api.fields import Text
from taskqueue.api.problems import Problem
from taskqueue.api.tasks.option_fields import (
    OPTIONS,
    EnqueueOptions,
    ListOfAnything,
    ObjectField,
)
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.arguments import check_names
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.options import check_options
from taskqueue.declarations.redaction import REDACTED, redacted_for
from taskqueue.exceptions import (
    ArgumentsDoNotBind,
    InvalidArguments,
    InvalidTask,
    TaskQueueError,
)
from taskqueue.models.task import LONGEST_NAME

AnyDefinition = BaseDefinition[Any, Any]
Path = tuple[object, ...]


class Enqueue(EnqueueOptions):
    """A task to be enqueued: its type, its arguments, and options in place of the type's own."""

    name = Text(max_length=LONGEST_NAME, help_text="Of a task type marked `api=True`.")
    args = ListOfAnything(required=False, default=list)
    kwargs = ObjectField(required=False, default=dict)


class Wanted(NamedTuple):
    """A task to be enqueued, found to be one that can be."""

    definition: AnyDefinition
    """With the options of the request."""
    args: list[Any]
    kwargs: dict[str, Any]
    unique_key: str | None


def wanted(given: Mapping[str, Any], *, at: Path = ()) -> Wanted:
    """What is to be enqueued. Raises 403 and 422 with pointers below `at`; writes nothing."""
    definition = exposed(given["name"], at=at)
    options = {name: given[name] for name in OPTIONS if name in given}
    definition = using(definition, options, at=at)
    args, kwargs = given["args"], given["kwargs"]
    unique_key = check_call(definition, args, kwargs, at=at)
    return Wanted(definition, args, kwargs, unique_key)


def exposed(name: str, *, at: Path = (), field: str = "name") -> AnyDefinition:
    """The definition, if it may be enqueued over REST. Raises 403 and 422 for that field."""
    definition = registry.find(name)
    if definition is None:
        open_names = [each.name for each in registry.all() if each.options.api]
        hint = did_you_mean(name, open_names)
        told = f"No task is named {name!r}.{hint}"
        raise Problem(422, "unknown_task", told, errors=[mistake((*at, field), told)])
    if not definition.options.api:
        raise not_exposed(name, at=at, field=field)
    return definition


def is_exposed(name: str) -> bool:
    """Whether tasks of that name may be enqueued over REST."""
    definition = registry.find(name)
    return definition is not None and definition.options.api


def check_exposed(name: str) -> None:
    """Raise 403 where a task of that name may not be enqueued over REST, also by another's like."""
    if not is_exposed(name):
        raise not_exposed(name)


def not_exposed(name: str, *, at: Path = (), field: str = "name") -> Problem:
    """403: its definition does not say that it may be enqueued over REST."""
    told = f"{name} may not be enqueued over REST: its definition is not marked api=True."
    return Problem(403, "task_not_exposed", told, errors=[mistake((*at, field), told)])


def using(definition: AnyDefinition, options: Mapping[str, Any], *, at: Path = ()) -> AnyDefinition:
    """The definition with the options. Raises 422, pointing to the one that cannot be."""
    check_each(options, at=at)
    check_kept(definition, options, at=at)
    try:
        check_names(definition.name, options.get("unique_key"), definition.signature)
    except InvalidTask as error:
        raise invalid(error, at=(*at, "unique_key")) from None
    try:
        return definition.using(**options) if options else definition
    except (InvalidTask, InvalidArguments) as error:
        raise invalid(error, at=at) from None


def check_each(options: Mapping[str, Any], *, at: Path = ()) -> None:
    """Raise 422, pointing to the first option that cannot have its value."""
    for name, value in options.items():
        try:
            check_options({name: value}, declared=False)
        except (InvalidTask, InvalidArguments) as error:
            raise invalid(error, at=(*at, name)) from None


def check_kept(definition: AnyDefinition, options: Mapping[str, Any], *, at: Path = ()) -> None:
    """Raise 422 for `kept` where the definition does not declare it.

    A task that keeps its unique key is never pruned: each request would add a row for ever.
    """
    if options.get("unique_for") == "kept" and definition.options.unique_for != "kept":
        told = (
            "Over REST unique_for can be 'kept' only where the definition declares "
            "@task(unique_for='kept')."
        )
        raise _problem("invalid_option", told, (*at, "unique_for"))


def check_call(
    definition: AnyDefinition, args: Sequence[Any], kwargs: Mapping[str, Any], *, at: Path = ()
) -> str | None:
    """The unique key. Raises 422 for arguments that do not bind, cannot be stored, or are redacted.

    The latter are copied from an answer.
    """
    try:
        *_, unique_key = definition.encode(args, kwargs)
        _check_secrets(definition, args, kwargs, at)
        return unique_key
    except ArgumentsDoNotBind as error:
        place = _misfit(definition, args, kwargs)
        raise _problem("arguments_do_not_bind", str(error), (*at, *place)) from None
    except InvalidArguments as error:
        raise _problem("invalid_arguments", str(error), (*at, *error.path)) from None
    except InvalidTask as error:
        raise invalid(error, at=(*at, "unique_key")) from None
    except (TaskQueueError, Problem):
        raise
    except Exception as error:
        # Not its text: it may hold an argument, and that may be a secret.
        kind = type(error).__name__
        told = f"The unique key of {definition.name} cannot be made of these arguments: {kind}."
        raise _problem("invalid_arguments", told, (*at, "kwargs")) from None


def _check_secrets(
    definition: AnyDefinition, args: Sequence[Any], kwargs: Mapping[str, Any], at: Path
) -> None:
    """Refuse what an answer shows in place of a secret."""
    hidden = redacted_for(definition, [None for _ in args], dict.fromkeys(kwargs))
    places: list[tuple[Path, Any, Any]] = [
        *((("args", index), value, hidden.args[index]) for index, value in enumerate(args)),
        *((("kwargs", name), value, hidden.kwargs[name]) for name, value in kwargs.items()),
    ]
    for place, value, shown in places:
        if value == shown == REDACTED:
            told = f"Write the value anew that stands as {REDACTED}."
            raise _problem("redacted_value", told, (*at, *place))


def _misfit(definition: AnyDefinition, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Path:
    """The place of an argument that no parameter takes; of those that lack, the keywords."""
    signature = definition.signature
    names = signature.positional_names(len(args))
    if len(names) < len(args):
        return "args", len(names)
    for index, name in enumerate(names):
        if name is None:
            return "args", index
    for key in kwargs:
        if signature.keyword_name(key) is None or key in names:
            return "kwargs", key
    return ("kwargs",)


def invalid(error: Exception, *, at: Path) -> Problem:
    """422 for an option that cannot be."""
    return _problem("invalid_option", str(error), at)


def _problem(code: str, told: str, at: Path) -> Problem:
    return Problem(422, code, told, errors=[mistake(at, told)])


def mistake(at: Path, told: str, code: str = "invalid") -> dict[str, str]:
    """One of the `errors` of a problem, with a JSON pointer (RFC 6901)."""
    escaped = (str(each).replace("~", "~0").replace("/", "~1") for each in at)
    return {"pointer": "".join(f"/{each}" for each in escaped), "code": code, "detail": told}
