"""References and conditions in builders: placeholders for results that are not known yet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from taskqueue.core.workflow_states import After
from taskqueue.declarations.argument_kinds import Deferred
from taskqueue.declarations.payload import DEEPEST, IsSecret, encode
from taskqueue.declarations.workflows import conditions
from taskqueue.declarations.workflows.bounds import LARGEST_COMPARED
from taskqueue.declarations.workflows.reference_data import MARK, Target, escaped, escaped_key
from taskqueue.exceptions import InvalidArguments, InvalidWorkflow, UnsupportedType


class Condition:
    """A condition on results, for `when=`. Combine conditions with `&`, `|` and `~`."""

    def __init__(self, data: dict[str, Any], references: Iterable[Reference]) -> None:
        self.data = data
        self.references = tuple(references)

    def __and__(self, other: Condition | Reference) -> Condition:
        return self._with(conditions.AND, other)

    def __or__(self, other: Condition | Reference) -> Condition:
        return self._with(conditions.OR, other)

    def __invert__(self) -> Condition:
        return Condition({"op": conditions.NOT, "of": [self.data]}, self.references)

    def __bool__(self) -> NoReturn:
        raise InvalidWorkflow(
            "A condition has no value yet: the steps that it reads have not run. Give it to "
            "when=, and combine conditions with &, | and ~ instead of `and`, `or` and `not`."
        )

    def _with(self, name: str, other: Condition | Reference) -> Condition:
        more = condition_of(other)
        return Condition(
            {"op": name, "of": [self.data, more.data]}, [*self.references, *more.references]
        )


def condition_of(value: object) -> Condition:
    """Return a condition, or whether the result that a reference stands for is true.

    Raises `InvalidWorkflow` for anything else.
    """
    if isinstance(value, Condition):
        return value
    if isinstance(value, Reference):
        return value._condition(conditions.IS_TRUE)
    raise InvalidWorkflow(
        f"when= takes a condition on results, such as stats['rows'] > 0, not {_shown(value)}."
    )


def _shown(value: object) -> str:
    # Not its text: it may be secret.
    return repr(value) if value is None or isinstance(value, bool) else type(value).__name__


class Reference(Deferred):
    """A placeholder for a value that is known only at run time; `[...]` selects a part."""

    __hash__ = None  # type: ignore[assignment]  # `==` makes a condition.

    def __init__(self, owner: object, target: Target) -> None:
        # The builder in which it may be used.
        self.owner = owner
        self.target = target

    def __getitem__(self, key: str | int) -> Reference:
        if isinstance(key, bool) or not isinstance(key, str | int):
            raise InvalidWorkflow(
                f"{self._what()}: a part is selected by a key or an index, not by {_shown(key)}."
            )
        if len(self.target.path) >= DEEPEST:
            raise InvalidWorkflow(f"{self._what()}: a path has at most {DEEPEST} keys.")
        path = (*self.target.path, key)
        return Reference(self.owner, replace(self.target, path=path))

    def lazy(self) -> Reference:
        """Return the list as a sequence that the body reads in pages."""
        return Reference(self.owner, replace(self.target, is_lazy=True))

    def length(self) -> Reference:
        """Return its length, for arguments and conditions."""
        return Reference(self.owner, replace(self.target, is_length=True))

    def is_null(self) -> Condition:
        """Return the condition that it is None, as are the results of steps that did not run."""
        return self._condition(conditions.IS_NULL)

    def is_in(self, values: Any) -> Condition:
        """Return the condition that a list, or another result, contains it."""
        return self._condition(conditions.MEMBERSHIP, values)

    def contains(self, value: Any) -> Condition:
        """Return the condition that it contains a value."""
        operand, references = _operand(value)
        own = self.target.to_json()
        return Condition({"op": conditions.MEMBERSHIP, "of": [operand, own]}, [self, *references])

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return self._condition("==", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return self._condition("!=", other)

    def __lt__(self, other: Any) -> Condition:
        return self._condition("<", other)

    def __le__(self, other: Any) -> Condition:
        return self._condition("<=", other)

    def __gt__(self, other: Any) -> Condition:
        return self._condition(">", other)

    def __ge__(self, other: Any) -> Condition:
        return self._condition(">=", other)

    def __and__(self, other: Condition | Reference) -> Condition:
        return condition_of(self) & other

    def __or__(self, other: Condition | Reference) -> Condition:
        return condition_of(self) | other

    def __invert__(self) -> Condition:
        return ~condition_of(self)

    def __bool__(self) -> NoReturn:
        raise self._is_not_known("Use when= to decide by it")

    def __iter__(self) -> NoReturn:
        raise self._is_not_known("Use .map(...) for a step over its items")

    def __len__(self) -> NoReturn:
        raise self._is_not_known("Use .length() in conditions and arguments")

    def __contains__(self, item: object) -> NoReturn:
        raise self._is_not_known("Use .contains(...) in conditions")

    def __repr__(self) -> str:
        return f"<{self.target}>"

    def _what(self) -> str:
        text = str(self.target)
        return text[:1].upper() + text[1:]

    def _is_not_known(self, remedy: str) -> InvalidWorkflow:
        return InvalidWorkflow(
            f"{self._what()} is not known while the workflow is built. {remedy}, or let a task "
            "read it."
        )

    def _condition(self, name: str, *others: object) -> Condition:
        operands, references = [self.target.to_json()], [self]
        for other in others:
            operand, more = _operand(other)
            operands.append(operand)
            references += more
        return Condition({"op": name, "of": operands}, references)


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a step, or of one of several, for `after=`."""

    owner: object
    steps: tuple[str, ...]
    when: After


class StepHandle(Reference):
    """A step of a builder: it stands for its result, or, in `after=`, for the step itself."""

    def __init__(self, owner: object, name: str, steps: tuple[str, ...] = ()) -> None:
        super().__init__(owner, Target(steps=(name,)))
        self.name = name
        # For a canvas of several steps, all of them: it fails if one of them does.
        self.steps = steps or (name,)

    @property
    def error(self) -> Reference:
        """Return a reference to `{error_class, message, task_id}`; None if it did not fail."""
        return Reference(self.owner, Target(steps=self.steps, part="error"))

    @property
    def failed(self) -> Ending:
        """Return its failure, for `after=`."""
        return Ending(self.owner, self.steps, After.FAILED)

    @property
    def ended(self) -> Ending:
        """Return any end of it, for `after=`."""
        return Ending(self.owner, (self.name,), After.ENDED)


def _operand(value: Any) -> tuple[Any, list[Reference]]:
    """Return a value of a comparison as data. Raises `InvalidWorkflow` if JSON has none such."""
    if isinstance(value, Reference):
        return value.target.to_json(), [value]
    try:
        text = encode(value, limit=LARGEST_COMPARED, what="A value in a condition")
    except InvalidArguments as error:
        raise InvalidWorkflow(str(error)) from None
    return escaped(json.loads(text)), []


def encode_with_references(
    value: Any, *, limit: int, what: str, is_secret: IsSecret | None = None
) -> tuple[str, tuple[Reference, ...]]:
    """Return the JSON text of a value and the references in it.

    Raises `InvalidArguments` as `payload.encode` does.
    """
    try:
        text = encode(value, limit=limit, what=what, is_secret=is_secret)
    except UnsupportedType:  # Perhaps a reference; most calls have none.
        text = ""
    if text and MARK not in text:
        return text, ()
    replacing = _Replacing()
    data = replacing.in_(value)
    text = encode(data, limit=limit, what=what, is_secret=is_secret)
    return text, tuple(replacing.found)


class _Replacing:
    """Replaces references by their data, and escapes data that looks like a reference."""

    def __init__(self) -> None:
        self.found: list[Reference] = []

    def in_(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, Reference):
            self.found.append(value)
            return value.target.to_json()
        if depth > DEEPEST:  # `encode` refuses it, and may find a cycle.
            return value
        if isinstance(value, Mapping):
            return {escaped_key(key): self.in_(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.in_(item, depth + 1) for item in value]
        return value
