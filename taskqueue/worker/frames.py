"""Frames between the parent and its children: a length, then plain values.

`marshal` carries only plain values and runs no code; both ends use the same interpreter. A success
without a return value has a frame of fixed size, so that many of them can be read at once.
"""

from __future__ import annotations

import marshal
import struct
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

_LENGTH = struct.Struct("!I")
# The mark (a length that no frame has), the lease, and the times at which its body ended and
# started.
_SUCCESS = struct.Struct("!Iqdd")
_IS_SUCCESS = 0xFFFFFFFF
# How many fields of an outcome are sent for a success with only a value.
PLAIN = 5
WHOLE = 10**12  # The parts of a slot: so many that any number of bodies can have equal shares.
Frame = tuple[Any, ...]
Line = tuple[int, float, int, str, str]  # Lease, moment, level, logger, text.
Said = tuple[float, str, str | None]  # Percent, message, and detail as JSON text.


def pack(frame: Frame) -> bytes:
    """Return the bytes of a frame."""
    if frame[0] == OUTCOME and len(frame[1]) == PLAIN and frame[1][-1] is None:
        lease_id, _, ended, started, _ = frame[1]
        return _SUCCESS.pack(_IS_SUCCESS, lease_id, ended, started)
    body = marshal.dumps(frame)
    return _LENGTH.pack(len(body)) + body


class Unpacker:
    """Assembles frames from bytes as they arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete with these bytes.

        Consecutive successes without a value become one frame: a list of rows, each with the mark,
        the lease and the two times.
        """
        buffer = self._buffer
        buffer += data
        start, end = 0, len(buffer)
        while end - start >= 4:
            (size,) = _LENGTH.unpack_from(buffer, start)
            if size == _IS_SUCCESS:
                rows = _successes(buffer, start)
                if not rows:
                    break
                start += len(rows) * _SUCCESS.size
                yield (SUCCEEDED, rows)
                continue
            if end - start - 4 < size:
                break
            with memoryview(buffer) as view:
                frame = marshal.loads(view[start + 4 : start + 4 + size])  # noqa: S302
            start += 4 + size
            yield frame
        del buffer[:start]


def _successes(buffer: bytearray, start: int) -> list[tuple[Any, ...]]:
    """Return the complete frames of successes from `start` on, up to the first other frame."""
    end = start + (len(buffer) - start) // _SUCCESS.size * _SUCCESS.size
    with memoryview(buffer) as view, view[start:end] as part:
        return list(takewhile(_is_success, _SUCCESS.iter_unpack(part)))


def _is_success(row: tuple[Any, ...]) -> bool:
    return bool(row[0] == _IS_SUCCESS)


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
EXCLUDED = "excluded"
OUTCOME = "outcome"
SUCCEEDED = "succeeded"
RECORDED = "recorded"
UNSURE = "unsure"
LINES = "lines"
PROGRESS = "progress"
RECALLED = "recalled"
OVERWEIGHT = "overweight"
BROKEN = "broken"
SYNCED = "synced"

# The reasons for interrupting a body.
STOPPED = "stopped"
TIMEOUT = "timeout"
DEADLINE = "deadline"
MEMORY = "memory"
