"""Modes that a test starts, and that end with a block, with `stop`, or with the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from asgiref.sync import sync_to_async


class Lasting:
    """A mode for `with` and `async with`; `start` and `stop` are for code without a block."""

    def start(self) -> None:
        """Begin without a block; `stop` ends it."""
        self._begin()
        begun.append(self)

    def stop(self) -> None:
        """End the mode that the latest `start` began, unless it has ended."""
        for place in reversed(range(len(begun))):
            if begun[place] is self:
                del begun[place]
                self._end()
                return

    def _begin(self) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await sync_to_async(self.start, thread_sensitive=True)()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await sync_to_async(self.stop, thread_sensitive=True)()


begun: list[Lasting] = []  # Modes that have begun and not ended, in this order.


@contextmanager
def leftovers_ended() -> Iterator[None]:
    """End the modes that the block begins and does not end; earlier modes continue."""
    before = len(begun)
    try:
        yield
    finally:
        while len(begun) > before:
            begun[-1].stop()
