"""The standard output, whatever its encoding is, and where it cannot be written."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.core.management.base import CommandError

NOT_SAID = 3
"""The exit code where it was done, and could not be told."""
HANDLER = "taskqueue.legible"
"""What is done with characters that an encoding does not have: of `str.encode`."""
# Each as wide as what it stands for, or tables would not stay tables.
MARKS = str.maketrans("…→▁▂▃▄▅▆▇█“”�", '~>_.:-=+*#""?')


class Unwritable(Exception):
    """The message says why nothing can be written."""


class Closed:
    """In place of a standard output that the process was started without."""

    def write(self, msg: str) -> None:
        """Raises OSError."""
        raise OSError("it is closed")

    def isatty(self) -> bool:
        """Nobody looks at it."""
        return False

    def flush(self) -> None:
        """Nothing waits."""


def _legible(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(MARKS)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


codecs.register_error(HANDLER, _legible)


@contextmanager
def legible(stream: Any) -> Iterator[None]:
    """Write marks, or escapes, for what the encoding of the stream does not have."""
    if not hasattr(stream, "reconfigure"):
        yield
        return
    before = stream.errors
    stream.reconfigure(errors=HANDLER)
    try:
        yield
    finally:
        with suppress(OSError, ValueError):  # Which flush what cannot be written.
            stream.reconfigure(errors=before)


@contextmanager
def writing() -> Iterator[None]:
    """Raise `Unwritable` where the stream is full, closed or broken; not where its reader left."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Unwritable(said) from error


@contextmanager
def finished(finish: Callable[[], None]) -> Iterator[None]:
    """Finish the output, end quietly where its reader has left, and tell where it is unwritable.

    Raises CommandError with the exit code of what was done and not told; an error of the block
    itself goes first.
    """
    try:
        yield
        finish()
    except BrokenPipeError:
        _write_nowhere()
    except Unwritable as error:
        _write_nowhere()
        raise CommandError(
            f"It was done, but the standard output cannot be written: {error}.",
            returncode=NOT_SAID,
        ) from None
    except BaseException:
        try:
            finish()
        except (Unwritable, OSError):
            _write_nowhere()
        raise


def _write_nowhere() -> None:
    """What is still to be flushed when the process ends must not raise again."""
    with suppress(AttributeError, OSError, ValueError):  # There may be no file at all.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
