"""In place of Django's: empty the tables between tests, in a tenth of the time.

Django's truncates all tables and then makes content types and permissions anew. Here these stay,
and only what holds anything is emptied: by DELETE while it is small, which needs no new files.
"""

from __future__ import annotations

from typing import Any

from django.core.management.commands.flush import Command as Flush
from django.db import connections
from django.db.transaction import atomic

KEPT = {"django_content_type", "auth_permission", "django_migrations"}
LARGE = 1 << 18
"""Bytes, dead rows and all."""


class Command(Flush):
    def handle(self, **options: Any) -> None:
        connection = connections[options["database"]]
        quoted = connection.ops.quote_name
        tables = sorted(set(connection.introspection.django_table_names()) - KEPT)
        sizes = dict.fromkeys(tables, 1)
        with atomic(using=connection.alias), connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute(
                    "SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relname = ANY(%s)",
                    [tables],
                )
                sizes = dict(cursor.fetchall())
            large = [table for table in tables if sizes[table] > LARGE]
            for table in tables:
                if sizes[table] and table not in large:
                    cursor.execute(f"DELETE FROM {quoted(table)}")
            if large:
                cursor.execute(f"TRUNCATE {', '.join(map(quoted, large))} CASCADE")
