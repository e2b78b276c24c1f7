"""Write to the standard output in any encoding, and report that it cannot be written."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from django.core.management.base import CommandError

# The exit code where the command was done and its output could not be written.
NOT_SAID = 3
# Each as wide as what it stands for, so that columns stay aligned.
MARKS = str.maketrans("…→▁▂▃▄▅▆▇█“”�", '~>_.:-=+*#""?')


class Unwritable(Exception):
    """The standard output cannot be written; the message says why."""


def legible(text: str, encoding: str | None) -> str:
    """Return the text with marks, or escapes, for characters that the encoding does not have."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        octets = text.translate(MARKS).encode(encoding or "utf-8", "backslashreplace")
        return octets.decode(encoding or "utf-8")
    return text


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
    """Finish the output; end quietly where its reader has left.

    Raises CommandError with exit code `NOT_SAID` where it cannot be written; an error of the block
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
            f"The command was done, but the standard output cannot be written: {error}.",
            returncode=NOT_SAID,
        ) from None
    except BaseException:
        try:
            finish()
        except (Unwritable, OSError):
            _write_nowhere()
        raise


def _write_nowhere() -> None:
    """Let nothing raise again that is still to be flushed when the process ends."""
    with suppress(AttributeError, OSError, ValueError):  # There may be no file at all.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
