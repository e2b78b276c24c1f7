"""The raw loop: claim tasks with their leases and record them, until there are none.

It is as fast as psycopg without pipelining: prepared statements, one round trip each, and nothing
between them. Claim and record are a transaction each; with `--joined` one transaction records a
batch and claims the next, as a worker does.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext

import django

django.setup()

from benchmarks import raw  # noqa: E402

STATEMENTS: dict[str, type[raw.Engine | raw.Least]] = {"engine": raw.Engine, "least": raw.Least}


def main(arguments: argparse.Namespace) -> None:
    """Drain the queue under that worker's name."""
    with raw.session() as cursor:
        loop = STATEMENTS[arguments.statements](cursor, arguments.name, arguments.batch)
        leases = loop.claim()
        while leases:
            with cursor.connection.transaction() if arguments.joined else nullcontext():
                loop.record(leases)
                leases = loop.claim()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--batch", type=int, default=raw.BATCH)
    parser.add_argument("--joined", action="store_true")
    parser.add_argument("--statements", choices=STATEMENTS, default="engine")
    main(parser.parse_args())
