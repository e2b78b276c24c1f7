"""The table of the demo's findings."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    operations = [
        migrations.CreateModel(
            name="SourceFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "path",
                    models.CharField(
                        help_text="Relative to the root walked.", max_length=1000, unique=True
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        help_text="The ending of the name, such as .py.", max_length=20
                    ),
                ),
                ("lines", models.PositiveIntegerField()),
                ("words", models.PositiveIntegerField()),
                ("imports", models.PositiveIntegerField(default=0, help_text="Import statements.")),
                ("classes", models.PositiveIntegerField(default=0)),
                ("functions", models.PositiveIntegerField(default=0)),
                (
                    "modules",
                    models.JSONField(
                        default=list, help_text="The modules imported, one a statement."
                    ),
                ),
                ("scanned_at", models.DateTimeField()),
            ],
            options={
                "ordering": ("path",),
            },
        ),
    ]
