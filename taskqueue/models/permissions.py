"""What Django's permissions allow: rows change by the engine's verbs, so nobody may edit them."""

VIEW_ONLY = ("view",)
"""In place of Django's four: there is no form that adds, changes or deletes a row."""
