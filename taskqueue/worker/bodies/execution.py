"""Running one attempt in a child: from an order to an outcome."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from contextvars import Token
from functools import partial
from typing import Any, cast

from django.db import InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue import tracing
from taskqueue.conf import get_settings
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.declarations import snapshots
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.making_snapshots import unknown_in_text
from taskqueue.declarations.payload import encode, storable
from taskqueue.declarations.workflows.reference_data import MARK
from taskqueue.declarations.workflows.signing import FanOut
from taskqueue.engine.connections import project_connection
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.tally import Tally
from taskqueue.engine.transient_errors import is_outage
from taskqueue.exceptions import LeaseEnded
from taskqueue.worker import frames
from taskqueue.worker.bodies.announcing import announce_end, announce_start
from taskqueue.worker.bodies.context import Context, StepReading, _current
from taskqueue.worker.bodies.failure_log import log_raised, trim_traceback
from taskqueue.worker.bodies.order import Order
from taskqueue.worker.bodies.spans import begin_span, note_raised
from taskqueue.worker.bodies.verdicts import away, not_begun, verdict_on
from taskqueue.worker.frames import PLAIN, Frame
from taskqueue.worker.outcomes import aged

_loads = json.JSONDecoder().decode  # `json.loads` checks its options first, at each call.

# Starts a coroutine on an event loop.
Starter = Callable[[Callable[[], Coroutine[Any, Any, Any]]], None]
# Calls a body, either in this thread or on an event loop.
Runner = Callable[[BaseDefinition[Any, Any], Context, list[Any], dict[str, Any]], Any]


class _NotBegun(Exception):
    """The database became unavailable before the body began."""


class Attempt:
    """One attempt in its child."""

    def __init__(self, order: Order, context: Context, tally: Tally) -> None:
        self.order = order
        self.context = context
        self._tally = tally
        self.snapshot: dict[str, Any] = {}
        self.definition: BaseDefinition[Any, Any] | None = None
        # Whether the body returned a fan-out, whose calls have been written.
        self._has_fan = False
        self.started_at = 0.0

    def run(self, call: Runner) -> Frame:
        """Run the attempt and return the frame for the parent. Never raises."""
        if parked := self._prepare():
            return self._parked(parked)
        token = self._start()
        try:
            return self._run_body(call)
        except BaseException as error:
            return self._failed(error)
        finally:
            if self.context._span is not None:
                self.context._span.end()
            _current.reset(token)

    def begin(self, start: Starter) -> Frame | None:
        """Start the body beside others. Return the frame if it has ended already. Never raises.

        The code around the body runs in this thread, while no event loop runs in it.
        """
        if parked := self._prepare():
            return self._parked(parked)
        token = self._start()
        try:
            definition, args, kwargs = self._called()
            start(partial(definition.body, *args, **kwargs))
        except BaseException as error:
            frame = self._failed(error)
            if self.context._span is not None:
                self.context._span.end()
            return frame
        finally:
            if self.context._span is not None:
                self.context._span.leave()
            _current.reset(token)
        return None

    def end(self, result: Callable[[], Any]) -> Frame:
        """Return the frame of a body that ran beside others. Never raises."""
        token = _current.set(self.context)
        if self.context._span is not None:
            self.context._span.enter()
        try:
            return self._succeeded(self._encode(result()))
        except BaseException as error:
            return self._failed(error)
        finally:
            if self.context._span is not None:
                self.context._span.end()
            _current.reset(token)

    def _start(self) -> Token[Context | None]:
        self.started_at = time.monotonic()
        token = _current.set(self.context)
        if tracing.active is not None or StepReading.is_wanted:
            begin_span(self)
        return token

    def _parked(self, why: str) -> Frame:
        return self._frame(
            Outcome(
                self.order.lease_id,
                OutcomeKind.PARKED,
                time.monotonic(),
                error_class="taskqueue.exceptions.UnknownTask",
                error_message=storable(why, limit=1000),
                delay=get_settings().PARK_DELAY.total_seconds(),
            )
        )

    def _prepare(self) -> str:
        """Find the definition. Return why the task cannot run here; empty if it can."""
        order = self.order
        self.definition = registry.find(order.name)
        if self.definition is None:
            return (
                f"No definition of {order.name!r} on this worker. It knows those that the module "
                "`tasks` of an installed app declares or imports."
            )
        if order.options:
            self.snapshot = snapshots.loaded(order.options)
            if unknown := unknown_in_text(order.options):
                return f"This worker does not know the option {unknown}."
        return ""

    def _run_body(self, call: Runner) -> Frame:
        definition, args, kwargs = self._called()
        if definition.options.atomic:
            return self._run_atomic(call, definition, args, kwargs)
        return self._succeeded(self._encode(call(definition, self.context, args, kwargs)))

    def _called(self) -> tuple[BaseDefinition[Any, Any], list[Any], dict[str, Any]]:
        """Announce the start. Return the definition to call, with its arguments."""
        definition = cast("BaseDefinition[Any, Any]", self.definition)
        try:
            args, kwargs = self._read_arguments(definition)
        except (OperationalError, InterfaceError) as error:
            # Failures of rows of other databases are counted.
            if is_outage(error) and project_connection().errors_occurred:
                raise _NotBegun from error
            raise
        if definition.options.takes_context:
            args = [definition.context_for(self.context), *args]
        announce_start(self, definition)
        return definition, args, kwargs

    def _read_arguments(self, definition: BaseDefinition[Any, Any]) -> tuple[Any, Any]:
        """Return what the body is given. All that is read before it begins is read here."""
        order = self.order
        is_step = snapshots.STEP in self.snapshot
        if is_step and definition.is_async:
            self.context.workflow.read()
        if is_step and (MARK in order.args or MARK in order.kwargs):
            args, kwargs = self._arguments_of_step()
        else:
            args = _loads(order.args) if order.args != "[]" else []
            kwargs = _loads(order.kwargs) if order.kwargs != "{}" else {}
        definition.signature.check(definition.name, args, kwargs)
        return definition.loaded(args, kwargs)

    def _run_atomic(
        self, call: Runner, definition: BaseDefinition[Any, Any], args: Any, kwargs: Any
    ) -> Frame:
        """Commit the body and the record of its success together, or neither."""
        # Imported here: a body that is not atomic does not need the engine's record.
        from taskqueue.engine.record import record_success

        connection = project_connection()
        has_begun = has_returned = is_recorded = False
        try:
            with self._tally.guard(), self._transaction(connection):
                has_begun = True
                text = self._encode(call(definition, self.context, args, kwargs))
                has_returned = True
                outcome = aged(self._outcome(OutcomeKind.SUCCEEDED, text), time.monotonic())
                policy = EndPolicy.of(get_settings())
                # The last statement before COMMIT: statements after it would not be covered by the
                # fence.
                if not record_success(connection, outcome, policy=policy, tally=self._tally):
                    raise LeaseEnded("The lease ended before the body did.")
                is_recorded = True
        except (OperationalError, InterfaceError) as error:
            if is_recorded:  # COMMIT was sent; only the fence can tell whether it took effect.
                return self._frame(self._outcome(OutcomeKind.SUCCEEDED), frames.UNSURE)
            if has_begun and not has_returned:
                raise  # The body has met it, and its rules for retries apply.
            return self._away(error) if has_begun else self._not_begun(error)
        outcome = self._outcome(OutcomeKind.SUCCEEDED, text)
        announce_end(self, outcome, None)
        return self._frame(outcome, frames.RECORDED)

    def _arguments_of_step(self) -> tuple[list[Any], dict[str, Any]]:
        """Return arguments in which references to steps are replaced by their results."""
        # Imported here, because few bodies need it.
        from taskqueue.engine.workflows.results import arguments_of

        order, alias = self.order, project_connection().alias
        return arguments_of(alias, task_id=order.task_id, args=order.args, kwargs=order.kwargs)

    def _transaction(self, connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
        """Return the transaction of an atomic body, which ends with a COMMIT."""
        return atomic(using=connection.alias, durable=True)

    def _encode(self, value: Any) -> str | None:
        if value is None:
            return None
        if isinstance(value, FanOut):
            self._keep_fan_out(value)
            return None
        return encode(value, limit=get_settings().MAX_RESULT, what="result")

    def _keep_fan_out(self, fan_out: FanOut) -> None:
        """Write the calls that the body returned, which run in its place."""
        # Imported here, because few bodies need it.
        from taskqueue.engine.workflows.fan_outs import keep_fan_out

        lease_id, task_id = self.order.lease_id, self.order.task_id
        keep_fan_out(project_connection(), fan_out, lease_id=lease_id, task_id=task_id)
        self._has_fan = True

    def _succeeded(self, return_value: str | None) -> Frame:
        outcome = self._outcome(OutcomeKind.SUCCEEDED, return_value)
        announce_end(self, outcome, None)
        return self._frame(outcome)

    def _away(self, error: BaseException) -> Frame:
        """Return the frame of an attempt that will run again because its body was not at fault."""
        return self._frame(away(self._outcome(OutcomeKind.FENCED), error))

    def _not_begun(self, error: BaseException) -> Frame:
        """Return the frame of an attempt whose body did not begin, because it met no database."""
        return self._frame(not_begun(self._outcome(OutcomeKind.FENCED), error))

    def _failed(self, error: BaseException) -> Frame:
        if isinstance(error, _NotBegun) and error.__cause__ is not None:
            return self._not_begun(error.__cause__)
        trim_traceback(error)
        outcome = verdict_on(error, self)
        if outcome.kind == OutcomeKind.FAILED and not self.context._is_stopped:
            log_raised(self.order, outcome, error)
            if self.context._span is not None:
                note_raised(self, error)
        announce_end(self, outcome, error)
        return self._frame(outcome)

    def _outcome(self, kind: OutcomeKind, return_value: str | None = None) -> Outcome:
        outcome = Outcome(
            self.order.lease_id, kind, time.monotonic(), self.started_at, return_value
        )
        workflow = self.context._workflow
        if kind is not OutcomeKind.SUCCEEDED or (workflow is None and not self._has_fan):
            return outcome
        updates = None if workflow is None else workflow.updates
        return outcome._replace(updates=updates, has_fan=self._has_fan)

    def _frame(self, outcome: Outcome, what: str = frames.OUTCOME) -> Frame:
        if self.context._span is not None:
            self.context._span.outcome = str(outcome.kind)
        # Trailing fields with the usual values are left out.
        is_plain = outcome.updates is None and not outcome.has_fan
        kept = PLAIN if is_plain and outcome.kind is OutcomeKind.SUCCEEDED else len(outcome)
        return (what, (outcome[0], str(outcome[1]), *outcome[2:kept]))
