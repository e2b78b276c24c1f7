"""UUIDs that sort by the time they were made (RFC 9562, version 7)."""

from __future__ import annotations

import os
import struct
import threading
import time
from uuid import UUID

_VARIANT = 0x8000000000000000

_lock = threading.Lock()
_last = 0


def uuid7() -> UUID:
    """Return a version 7 UUID, greater than all earlier ones of this process.

    48 bits of milliseconds, 12 of a finer fraction and 62 random ones: RFC 9562, section 6.2,
    method 3. Identifiers break ties only, so a wrong clock costs nothing.
    """
    return UUID(int=_number())


def uuid7_hex() -> str:
    """Return the 32 hexadecimal digits of a new version 7 UUID; cheaper than the object."""
    return f"{_number():032x}"


def made_at(id: UUID) -> float:
    """Return when a version 7 UUID was made, in seconds since 1970."""
    return (id.int >> 80) / 1000


def uuid7_like(id: UUID, digest: bytes) -> UUID:
    """Return the one of the same time that the digest, of 10 bytes or more, makes of it."""
    chance = int.from_bytes(digest[:10], "big")
    high = (id.int >> 80) << 16 | 0x7000 | chance >> 68
    return UUID(int=high << 64 | _VARIANT | chance & (1 << 62) - 1)


def uuid7_hexes(count: int) -> list[str]:
    """Return the digits of this many new UUIDs, in order."""
    digits = uuid7_bytes(count).hex()
    return [digits[at : at + 32] for at in range(0, len(digits), 32)]


def uuid7_bytes(count: int) -> bytes:
    """Return this many new UUIDs, in order, 16 bytes each."""
    first = _reserve(count)
    chances = struct.unpack(f">{count}Q", os.urandom(8 * count))
    ids = [0] * (2 * count)
    ids[::2] = [_high(stamp) for stamp in range(first, first + count)]
    ids[1::2] = [_VARIANT | chance >> 2 for chance in chances]
    return struct.pack(f">{2 * count}Q", *ids)


def _number() -> int:
    return _with_chance(_reserve(1), int.from_bytes(os.urandom(8), "big"))


def _reserve(count: int) -> int:
    """Reserve this many consecutive stamps in this process; return the first."""
    global _last
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    stamp = (milliseconds << 12) | (rest << 12) // 1_000_000
    with _lock:
        first = max(stamp, _last + 1)
        _last = first + count - 1
    return first


def _with_chance(stamp: int, chance: int) -> int:
    return (_high(stamp) << 64) | _VARIANT | (chance >> 2)


def _high(stamp: int) -> int:
    """Return the first eight bytes: milliseconds, the version, and a fraction of one."""
    return (stamp >> 12) << 16 | 0x7000 | (stamp & 0xFFF)


def _forget_after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
