"""Plain values that every room uses: the standard library only."""

__version__ = "0.1.0"
