"""The demo project: `make demo` shows taskqueue at work."""
