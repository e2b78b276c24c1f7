"""Workflows as the project declares them: functions that build graphs, and their registry."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import cached_property, update_wrapper
from typing import Any, Self, cast

from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean_option
from taskqueue.declarations.arguments import UniqueKey, check_names, make_key
from taskqueue.declarations.option import Option, Use, option
from taskqueue.declarations.option_kinds import (
    Checked,
    Choice,
    Switch,
    UniqueKeyKind,
)
from taskqueue.declarations.options import check_sensitive
from taskqueue.declarations.payload import check_text
from taskqueue.declarations.registry import BaseRegistry
from taskqueue.declarations.scheduled import Scheduled, scheduled_of
from taskqueue.declarations.signature import Signature
from taskqueue.declarations.time_kinds import Moment, Seconds, When
from taskqueue.declarations.workflows.bounds import LONGEST_NAME
from taskqueue.declarations.workflows.builder import Builder
from taskqueue.declarations.workflows.calls import BuildsGraph
from taskqueue.declarations.workflows.checking import check_name, check_nesting
from taskqueue.declarations.workflows.graph import Graph
from taskqueue.declarations.workflows.reference_data import Path, Target, target_of
from taskqueue.declarations.workflows.references import Reference
from taskqueue.declarations.workflows.signing import Signing
from taskqueue.exceptions import InvalidTask, InvalidWorkflow, UnknownWorkflow

_ALWAYS = Use.TASK | Use.USING


def _check_version(name: str, value: Any) -> str:
    try:
        return check_text(value, limit=LONGEST_NAME, what=name)
    except (TypeError, ValueError) as error:
        raise InvalidWorkflow(str(error)) from None


# ruff: noqa: RUF009  (each call gives a dataclass field)
@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowOptions:
    """All options of `@workflow`; None means the project's setting, or no value."""

    name: str = option(
        Checked(lambda name, value: check_name(value, what="workflow")), Use.TASK, ""
    )
    version: str = option(Checked(_check_version), Use.TASK, "")
    deadline: Moment | None = option(When(), _ALWAYS)
    retention: timedelta | None = option(Seconds(), _ALWAYS)
    fail_fast: bool = option(Switch(), _ALWAYS, default=False)
    unique_key: UniqueKey | None = option(UniqueKeyKind(), _ALWAYS)
    on_duplicate: str = option(Choice(("return", "raise")), _ALWAYS, "return")
    sensitive: frozenset[str] = option(Checked(check_sensitive), Use.TASK, frozenset())
    api: bool = option(Switch(), Use.TASK, default=False)
    schedule: tuple[Scheduled, ...] = option(
        Checked(lambda name, value: scheduled_of(value)), Use.TASK, ()
    )


OPTIONS: dict[str, Option] = {
    field.name: replace(field.metadata["option"], name=field.name)
    for field in fields(WorkflowOptions)
}


def check_workflow_options(raw: Mapping[str, Any], use: Use) -> dict[str, Any]:
    """Return options in their normal form. Raises `InvalidTask` with the remedy."""
    checked = {}
    for name, value in raw.items():
        found = OPTIONS.get(name)
        if found is None:
            hint = did_you_mean_option(name, OPTIONS)
            raise InvalidWorkflow(_(
                "There is no option {name!r} of a workflow.{hint}", name=name, hint=hint
            ))  # fmt: skip
        if use not in found.use:
            raise InvalidWorkflow(_(
                "{name} belongs to the declaration: set it in @workflow({name}=...).", name=name
            ))  # fmt: skip
        checked[name] = found.check(value)
    return checked


class BaseWorkflow(Signing, BuildsGraph):
    """A function that builds a graph, with its options. Immutable: `.using()` returns another."""

    def __init__(self, body: Callable[..., Any], options: WorkflowOptions) -> None:
        self.body = body
        self.options = options
        self.name = options.name or f"{body.__module__}.{body.__qualname__}"
        update_wrapper(cast(Any, self), body, updated=())

    def __repr__(self) -> str:
        return f"<workflow {self.name}>"

    @cached_property
    def signature(self) -> Signature:
        """Return the parameters that an enqueue fills."""
        return Signature(self.body, takes_context=True, sensitive=self.options.sensitive)

    @property
    def has_key(self) -> bool:
        """Return whether it holds a unique key when it is enqueued alone."""
        return self.options.unique_key is not None

    def using(self, **options: Any) -> Self:
        """Return a copy of the workflow with other options. Raises `InvalidTask`."""
        changed = replace(self.options, **check_workflow_options(options, Use.USING))
        check_names(self.name, changed.unique_key, self.signature)
        return type(self)(self.body, changed)

    def build(self, /, *args: Any, **kwargs: Any) -> Graph:
        """Return the graph for these arguments; nothing is written.

        Raises `ArgumentsDoNotBind` and `InvalidArguments` as an enqueue does, `InvalidWorkflow`,
        and what the function raises.
        """
        return self.s(*args, **kwargs).build()

    def compile(self, args: str, kwargs: str, *, depth: int) -> Graph:
        """Return the graph of a call with these arguments, which may contain references."""
        check_nesting(depth, self.name)
        builder = Builder(self.name, depth=depth)
        positional = [
            _argument(builder, place, value) for place, value in enumerate(json.loads(args))
        ]
        named = {
            name: _argument(builder, name, value) for name, value in json.loads(kwargs).items()
        }
        given = self.signature.load(self.name, positional, named)
        self.body(builder, *given[0], **given[1])
        options, key = self.options, None
        if options.unique_key is not None:
            key = make_key(options.unique_key, self.signature, *given, stored=(args, kwargs))
        return builder.graph(
            version=options.version, args=args, kwargs=kwargs, sensitive=options.sensitive,
            deadline=_deadline(options.deadline), retention=options.retention,
            fail_fast=options.fail_fast, unique_key=key, on_duplicate=options.on_duplicate,
        )  # fmt: skip


def _deadline(moment: Moment | None) -> timedelta | datetime | None:
    assert not isinstance(moment, int | float)  # `When` has made a timedelta of it.
    return moment


def _argument(builder: Builder, origin: int | str, value: Any, path: Path = ()) -> Any:
    """Return an argument as the function receives it.

    A part that refers to a step of the parent becomes a reference to this argument.
    """
    if isinstance(value, list):
        return [
            _argument(builder, origin, each, (*path, place)) for place, each in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    if target_of(value) is not None:
        return Reference(builder, Target(argument=origin, path=path))
    plain = {key[1:] if key.startswith("$$") else key: item for key, item in value.items()}
    return {key: _argument(builder, origin, item, (*path, key)) for key, item in plain.items()}


class WorkflowRegistry(BaseRegistry[BaseWorkflow]):
    """All workflows of the project, by name; filled by importing each app's `tasks` module."""

    word, unknown = "workflow", UnknownWorkflow


workflows = WorkflowRegistry()


def check_workflow(workflow: BaseWorkflow) -> None:
    """Raise `InvalidWorkflow` if its function cannot build a graph."""
    body = workflow.body
    if inspect.iscoroutinefunction(body) or inspect.isgeneratorfunction(body):
        raise InvalidWorkflow(f"{workflow.name}: a workflow is built by a plain function.")
    if "<locals>" in body.__qualname__ and not workflow.options.name:
        raise InvalidWorkflow(
            f"{body.__qualname__} is defined inside another function, where no worker finds it. "
            "Move it to the top of its module."
        )
    if not workflow.options.name and len(workflow.name) > LONGEST_NAME:
        raise InvalidWorkflow(
            f"{workflow.name}: the name of a workflow has at most {LONGEST_NAME} characters. Give "
            "it a shorter one with @workflow(name=...)."
        )
    check_name(workflow.name, what="workflow")
    parameters = list(inspect.signature(body).parameters.values())
    if not parameters or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.POSITIONAL_ONLY,
    ):
        raise InvalidWorkflow(
            f"{workflow.name} has no first argument for its builder: def {body.__name__}(wf, ...)."
        )
    check_names(workflow.name, workflow.options.unique_key, workflow.signature)


def checked_declaration(body: object, options: Mapping[str, Any]) -> WorkflowOptions:
    """Return the options of a declaration. Raises `InvalidWorkflow` or `InvalidTask`."""
    if not inspect.isfunction(body):
        raise InvalidTask(f"@workflow decorates functions, not {body!r}.")
    return WorkflowOptions(**check_workflow_options(options, Use.TASK))
