"""Assertions on enqueued workflows, and their failure messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack
from unittest.mock import ANY

from asgiref.sync import sync_to_async

from taskqueue.core.workflow_states import WorkflowStatus
from taskqueue.declarations.arguments import check_unique_key
from taskqueue.declarations.redaction import redacted_workflow
from taskqueue.declarations.workflows.workflow import BaseWorkflow, workflows
from taskqueue.engine.connections import database_alias
from taskqueue.models import Workflow
from taskqueue.results.workflows import WorkflowRun
from taskqueue.testing.asserting import MOST, check_times, plain, shown_call
from taskqueue.testing.choices import check_among, check_names

# A workflow, its name, or the name of a canvas, such as `chain(load)`.
WhichWorkflow = BaseWorkflow | str


class ExpectedWorkflow(TypedDict, total=False):
    """Expected values of a workflow; a value that is left out, or `mock.ANY`, matches any."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    unique_key: str
    status: str


def assert_workflow_enqueued(
    which: WhichWorkflow | None = None, *, times: int = 1, **expected: Unpack[ExpectedWorkflow]
) -> list[WorkflowRun]:
    """Assert that this many matching workflows were enqueued, and return their handles.

    It counts the workflows in the test's database, also finished ones, but no children. Arguments
    are compared as the function receives them. `times=0` asserts that there is none. Raises
    `ArgumentsDoNotBind`, ValueError or TypeError for expectations that no workflow can meet.
    """
    check_times(times)
    wanted = _checked(which, expected)
    rows = Workflow.objects.using(database_alias()).filter(parent_step_id=None)
    seen = list(rows.order_by("created_at", "id"))
    matching = [row for row in seen if _fits(row, which, wanted)]
    if len(matching) != times:
        found = "\n".join(["Enqueued:", *(f"  {_line(row)}" for row in seen[:MOST])])
        raise AssertionError(
            f"Expected {times or 'none'} of {_wanted(which, wanted)}; found {len(matching)}. "
            f"{found if seen else 'No workflow was enqueued.'}"
        )
    return [WorkflowRun(row) for row in matching]


aassert_workflow_enqueued = sync_to_async(assert_workflow_enqueued, thread_sensitive=True)


def _checked(which: WhichWorkflow | None, expected: ExpectedWorkflow) -> dict[str, Any]:
    """Return the expected values as they are stored."""
    check_names(expected, ExpectedWorkflow.__annotations__)
    wanted = {name: plain(value) for name, value in expected.items() if value is not ANY}
    if "status" in wanted:
        check_among("status", wanted["status"], tuple(map(str, WorkflowStatus)))
    if "unique_key" in wanted:
        check_unique_key(wanted["unique_key"])
    if isinstance(which, BaseWorkflow) and {"args", "kwargs"} & wanted.keys():
        which.signature.check(which.name, wanted.get("args", []), wanted.get("kwargs", {}))
    return wanted


def _fits(row: Workflow, which: WhichWorkflow | None, wanted: Mapping[str, Any]) -> bool:
    if which is not None and row.name != _name_of(which):
        return False
    return _fits_arguments(row, wanted) and all(
        getattr(row, name) == wanted[name] for name in ("unique_key", "status") if name in wanted
    )


def _fits_arguments(row: Workflow, wanted: Mapping[str, Any]) -> bool:
    if not {"args", "kwargs"} & wanted.keys():
        return True
    args, kwargs = list(wanted.get("args", [])), wanted.get("kwargs", {})
    if (args, kwargs) == (row.args, row.kwargs):
        return True
    workflow = workflows.find(row.name)
    if workflow is None:
        return False
    bound = workflow.signature.bound(args, kwargs)
    given = workflow.signature.bound(row.args, row.kwargs)
    return bound is not None and plain(bound) == plain(given)


def _name_of(which: WhichWorkflow) -> str:
    return which if isinstance(which, str) else which.name


def _wanted(which: WhichWorkflow | None, wanted: Mapping[str, Any]) -> str:
    """Return the expected workflow in words, without the values of sensitive arguments."""
    text = "any workflow" if which is None else _name_of(which)
    if {"args", "kwargs"} & wanted.keys():
        text += _call(text, wanted.get("args", []), wanted.get("kwargs", {}))
    others = [f"{name}={wanted[name]!r}" for name in ("unique_key", "status") if name in wanted]
    return f"{text} with {', '.join(others)}" if others else text


def _line(row: Workflow) -> str:
    key = "" if row.unique_key is None else f" with unique_key={row.unique_key!r}"
    return f"{row.name}{_call(row.name, row.args, row.kwargs)}{key}: {row.status}"


def _call(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    shown = redacted_workflow(name, args, kwargs)
    if shown is None:
        # A canvas has no arguments.
        return "(…)" if args or kwargs else "()"
    return shown_call(shown.args, shown.kwargs)
