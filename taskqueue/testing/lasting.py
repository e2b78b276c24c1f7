"""Modes that a test begins, and that end with a block or by `stop`."""

from __future__ import annotations

from typing import Any, Self

from asgiref.sync import sync_to_async


class Lasting:
    """A mode for `with` and `async with`; `start` and `stop` are for code without a block."""

    def start(self) -> None:
        """Begin; `stop` ends it."""
        raise NotImplementedError

    def stop(self) -> None:
        """End what `start` began."""
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
