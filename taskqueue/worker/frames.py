"""Frames between the parent and its children: a length, then plain values.

`marshal` carries only plain values and runs no code; both ends are the same interpreter.
"""

from __future__ import annotations

import marshal
import struct
from collections.abc import Iterator
from typing import Any

_LENGTH = struct.Struct("!I")
Frame = tuple[Any, ...]
Line = tuple[int, float, int, str, str]  # Lease, moment, level, logger, text.


def pack(frame: Frame) -> bytes:
    """The bytes of a frame."""
    body = marshal.dumps(frame)
    return _LENGTH.pack(len(body)) + body


class Unpacker:
    """Assembles frames from bytes as they arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete with these bytes."""
        buffer = self._buffer
        buffer += data
        start, end = 0, len(buffer)
        while end - start >= 4:
            (size,) = _LENGTH.unpack_from(buffer, start)
            if end - start - 4 < size:
                break
            with memoryview(buffer) as view:
                frame = marshal.loads(view[start + 4 : start + 4 + size])  # noqa: S302
            start += 4 + size
            yield frame
        del buffer[:start]


# From the parent.
RUN = "run"
RECALL = "recall"
ASK = "ask"
INTERRUPT = "interrupt"
SUSPECT = "suspect"
EXIT = "exit"

# From a child.
READY = "ready"
PER_SLOT = "per slot"
OUTCOME = "outcome"
RECORDED = "recorded"
UNSURE = "unsure"
LINES = "lines"
PROGRESS = "progress"
RECALLED = "recalled"
OVERWEIGHT = "overweight"
BROKEN = "broken"
SYNCED = "synced"

# Why a body is interrupted.
STOPPED = "stopped"
TIMEOUT = "timeout"
DEADLINE = "deadline"
