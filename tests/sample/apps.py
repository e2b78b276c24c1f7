"""An app with tasks, as a user of taskqueue would write it."""

from __future__ import annotations

from django.apps import AppConfig


class SampleConfig(AppConfig):
    """The tasks that the tests run, and the marks which they leave in the database."""

    name = "tests.sample"
    label = "sample"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from tests.chaos.bugs import plant_if_told
        from tests.proofs import use_own_proofs

        plant_if_told()
        use_own_proofs()
