"""The queues of a worker, and how many tasks a claim takes from each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from taskqueue.declarations.serving import QueueChoice, parse_queues
from taskqueue.exceptions import InvalidTask

Quotas = list[tuple[str, int]]


class QueueQuotas:
    """The queues of `--queues` and `--strict`, and what a claim takes from each.

    Without weights: all queues, equally. With weights: smooth weighted round robin, as in nginx
    (https://github.com/nginx/nginx/commit/52327e0627f49dbda1e8db695e63a4b0af4448b1): every queue
    gains its weight in each round, the one with the most credit is served and pays the sum of the
    weights.
    """

    def __init__(
        self,
        weights: dict[str, int] | None = None,
        *,
        slots: dict[str, int] | None = None,
        is_strict: bool = False,
    ) -> None:
        self.weights = weights or {}
        # The most slots of the worker that a queue may have; a missing entry means all.
        self.slots = slots or {}
        self.is_strict = is_strict
        self._credits: dict[str, int] = {}

    @classmethod
    def parse(cls, text: str, *, is_strict: bool = False) -> QueueQuotas:
        """Read `critical=6,mail=3@2,low`. Raises `InvalidTask`."""
        choice = parse_queues(text)
        if is_strict and not choice.weights:
            raise InvalidTask("--strict needs --queues: it empties them in their order.")
        return cls(choice.weights, slots=choice.slots, is_strict=is_strict)

    @property
    def choice(self) -> str:
        """The queues as text; empty for all."""
        return str(QueueChoice(self.weights, self.slots))

    def change(self, choice: QueueChoice) -> None:
        """Serve these queues from now on; a claim under way may see a mixture."""
        self.weights, self.slots = choice.weights, choice.slots
        self._credits = {}

    def serving(self, ready: Iterable[str]) -> list[str]:
        """Return which of the queues with tasks this worker serves, in its order."""
        names = set(ready)
        return [name for name in self.weights or sorted(names) if name in names]

    def is_outranked(self, names: Sequence[str]) -> bool:
        """Return whether a queue goes before all of these, however few tasks wait in it."""
        return self.is_strict and names[:1] != list(self.weights)[:1]

    def quotas(self, names: Sequence[str], size: int) -> Quotas:
        """Return how many of `size` tasks to take from each of these queues."""
        if not names or size <= 0:
            return []
        if len(names) == 1 or self.is_strict:
            return [(names[0], size)]
        weights = {name: self.weights.get(name, 1) for name in names}
        total = sum(weights.values())
        rounds, rest = divmod(size, total)
        # Whole rounds serve each queue by its weight and leave the credits unchanged.
        quotas = {name: weight * rounds for name, weight in weights.items()}
        credits = self._credits
        for _ in range(rest):
            for name, weight in weights.items():
                credits[name] = credits.get(name, 0) + weight
            richest = max(names, key=lambda name: credits[name])
            credits[richest] -= total
            quotas[richest] += 1
        return [(name, quota) for name, quota in quotas.items() if quota]
