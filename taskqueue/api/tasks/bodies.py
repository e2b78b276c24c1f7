"""Bodies of requests that enqueue tasks, with the checks of an enqueue in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from rest_framework import serializers

from taskqueue.api.fields import Text
from taskqueue.api.problems import Path, Problem
from taskqueue.api.tasks.option_fields import OPTIONS, EnqueueOptions
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.arguments import check_names
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.options import check_options
from taskqueue.declarations.redaction import REDACTED, secret_places
from taskqueue.declarations.workflows.scheduling import Target
from taskqueue.declarations.workflows.workflow import BaseWorkflow, workflows
from taskqueue.exceptions import ArgumentsDoNotBind, InvalidArguments, InvalidTask, TaskQueueError
from taskqueue.models.task import LONGEST_NAME

AnyDefinition = BaseDefinition[Any, Any]


class Enqueue(EnqueueOptions):
    """A task to be enqueued: its type, its arguments, and options that replace the type's."""

    name = Text(max_length=LONGEST_NAME, help_text="Of a task type marked `api=True`.")
    args = serializers.ListField(required=False, default=list)
    kwargs = serializers.DictField(required=False, default=dict)


class Calls(serializers.ListField):
    """Tasks to be enqueued, as `Wanted`; the errors of all tasks are reported together."""

    def run_child_validation(self, data: list[Any]) -> list[Wanted]:
        """Return the tasks to be enqueued. Raises all errors by the places of their tasks."""
        found: list[Wanted] = []
        mistakes: Any = {}
        for place, body in enumerate(data):
            try:
                found.append(wanted(self.child.run_validation(body)))
            except serializers.ValidationError as error:
                mistakes[place] = error.detail
            except Problem as problem:
                mistakes[place] = problem.as_mistake()
        if mistakes:
            raise serializers.ValidationError(mistakes)
        return found


class Wanted(NamedTuple):
    """A task that can be enqueued; the definition has the options of the request."""

    definition: AnyDefinition
    args: list[Any]
    kwargs: dict[str, Any]
    unique_key: str | None


def wanted(body: Mapping[str, Any]) -> Wanted:
    """Return the task to be enqueued. Raises 403 and 422; writes nothing."""
    options = {name: body[name] for name in OPTIONS & body.keys()}
    definition = with_options(exposed(body["name"]), options)
    args, kwargs = body["args"], body["kwargs"]
    return Wanted(definition, args, kwargs, check_call(definition, args, kwargs))


def exposed_definitions() -> list[AnyDefinition]:
    """Return the definitions that may be enqueued over REST, by name."""
    return [definition for definition in registry.all() if definition.options.api]


def exposed(name: str, *, field: str = "name") -> AnyDefinition:
    """Return the definition, if it may be enqueued over REST. Raises 403 and 422 for the field."""
    definition = registry.find(name)
    if definition is None:
        hint = did_you_mean(name, [known.name for known in exposed_definitions()])
        raise Problem(422, "unknown_task", f"No task is named {name!r}.{hint}", at=(field,))
    if not definition.options.api:
        raise not_exposed(name, field=field)
    return definition


def exposed_target(name: str, known: Target | None) -> Target:
    """Return the definition or workflow, if REST may enqueue it. Raises 403 and 422.

    `known` is the target of that name that the schedule already runs.
    """
    target = known or registry.find(name) or workflows.find(name)
    if target is None or isinstance(target, BaseDefinition):
        return exposed(name, field="task")
    if not target.options.api:
        raise not_exposed(name, field="task")
    return target


def is_exposed(name: str) -> bool:
    """Return whether tasks of that name may be enqueued over REST."""
    definition = registry.find(name)
    return definition is not None and definition.options.api


def not_exposed(name: str, *, field: str = "name") -> Problem:
    """403: the definition does not allow an enqueue over REST."""
    detail = f"{name} may not be enqueued over REST: its definition is not marked api=True."
    return Problem(403, "task_not_exposed", detail, at=(field,))


def with_options(definition: AnyDefinition, options: Mapping[str, Any]) -> AnyDefinition:
    """Return the definition with the options. Raises 422 that points to an invalid option."""
    check_each(options)
    check_kept(definition, options)
    at: Path = ("unique_key",)
    try:
        check_names(definition.name, options.get("unique_key"), definition.signature)
        at = ()
        return definition.using(**options) if options else definition
    except (InvalidTask, InvalidArguments) as error:
        raise Problem(422, "invalid_option", str(error), at=at) from None


def check_each(options: Mapping[str, Any]) -> None:
    """Raise 422 that points to the first option with an invalid value."""
    for name, value in options.items():
        try:
            check_options({name: value}, declared=False)
        except (InvalidTask, InvalidArguments) as error:
            raise Problem(422, "invalid_option", str(error), at=(name,)) from None


def check_kept(definition: AnyDefinition, options: Mapping[str, Any], *, at: Path = ()) -> None:
    """Raise 422 for `kept` where the definition does not declare it.

    A task that keeps its unique key is never pruned: each request would add a row for ever.
    """
    if options.get("unique_for") == "kept" and definition.options.unique_for != "kept":
        detail = (
            "Over REST unique_for can be 'kept' only where the definition declares "
            "@task(unique_for='kept')."
        )
        raise Problem(422, "invalid_option", detail, at=(*at, "unique_for"))


def check_call(
    definition: AnyDefinition, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str | None:
    """Return the unique key.

    Raises 422 for arguments that do not bind or cannot be stored, that make a callable of the
    unique key or of a limit fail, or that an answer would redact.
    """
    try:
        with _telling_no_argument(f"The unique key of {definition.name} cannot be made of"):
            *stored, unique_key = definition.encode(args, kwargs)
    except ArgumentsDoNotBind as error:
        place = _misfit(definition, args, kwargs)
        raise Problem(422, "arguments_do_not_bind", str(error), at=place) from None
    except InvalidArguments as error:
        raise Problem(422, "invalid_arguments", str(error), at=error.path) from None
    except InvalidTask as error:
        raise Problem(422, "invalid_option", str(error), at=("unique_key",)) from None
    with _telling_no_argument(f"The limits of {definition.name} cannot be told for"):
        definition.place(args, kwargs, stored=(stored[0], stored[1]))
    check_secrets(definition, args, kwargs)
    return unique_key


@contextmanager
def _telling_no_argument(sentence: str) -> Iterator[None]:
    """Raise 422 for an exception of a callable of the project, with only the name of its class.

    Its text may contain an argument, which may be secret.
    """
    try:
        yield
    except TaskQueueError:
        raise
    except Exception as error:
        detail = f"{sentence} these arguments: {type(error).__name__}."
        raise Problem(422, "invalid_arguments", detail, at=("kwargs",)) from None


def check_secrets(
    definition: AnyDefinition | BaseWorkflow, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Refuse the placeholder that answers show instead of a secret."""
    for part, place in secret_places(definition, args, kwargs):
        if (args if part == "args" else kwargs)[place] == REDACTED:
            detail = f"{REDACTED} is a placeholder for a secret. Send the value itself."
            raise Problem(422, "redacted_value", detail, at=(part, place))


def check_kept_secrets(
    target: Target, args: Sequence[Any], kwargs: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    """Raise 422 if `given` has one part of the call and leaves out another that has secrets.

    A user who cannot see a secret must not send it elsewhere by changing the other arguments. The
    given values are not compared with the stored ones, because the answer would confirm guesses.
    """
    if given.keys().isdisjoint({"args", "kwargs"}):
        return
    for part, place in secret_places(target, args, kwargs):
        if part not in given:
            detail = "Give the sensitive values again: they stay only where no arguments are given."
            raise Problem(422, "redacted_value", detail, at=(part, place))


def _misfit(definition: AnyDefinition, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Path:
    """Return the place of an argument without a parameter, or the keywords that are missing."""
    signature = definition.signature
    names = signature.positional_names(len(args))
    if len(names) < len(args):
        return "args", len(names)
    if None in names:
        return "args", names.index(None)
    for key in kwargs:
        if signature.keyword_name(key) is None or key in names:
            return "kwargs", key
    return ("kwargs",)
