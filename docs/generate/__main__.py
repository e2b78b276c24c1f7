"""Write the generated parts of the documentation anew: `python -m docs.generate`."""

from __future__ import annotations

import os


def main() -> None:
    """Write the pages whose generated parts have changed, and name them."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django
    from django.conf import settings
    from django.core.management import call_command

    settings.DATABASES["default"] = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
    }
    django.setup()
    call_command("migrate", verbosity=0)
    from docs.generate.parts import pages

    for path, text in pages().items():
        if path.read_text() != text:
            path.write_text(text)
            print(path.name)


if __name__ == "__main__":
    main()
