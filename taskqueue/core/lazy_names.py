"""Names of packages and classes that are imported when they are first accessed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar


def lazy_names(
    package: str, places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package.

    `places` maps each name to its place: a module with the same name in it, or `module:name`.
    """

    def get(name: str) -> Any:
        try:
            place = places[name]
        except KeyError:
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
        module, _, other_name = place.partition(":")
        value = getattr(import_module(module), other_name or name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places})

    return get, names


class LateFunctions(type):
    """A class whose functions are imported one module at a time, when they are first accessed.

    `FUNCTIONS` maps modules to the names of their functions.
    """

    FUNCTIONS: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # A type checker would take any name to be there.

        def __getattr__(cls, name: str) -> Any:
            for module, names in cls.FUNCTIONS.items():
                if name in names.split():
                    function = getattr(import_module(module), name)
                    setattr(cls, name, staticmethod(function))
                    return function
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
