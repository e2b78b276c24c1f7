"""Enqueue tasks of one tenant."""

from __future__ import annotations

import sys

import django

django.setup()

from benchmarks.limited_tasks import fair  # noqa: E402

if __name__ == "__main__":
    tenant, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    fair.enqueue_many([((tenant,), {})] * count)
