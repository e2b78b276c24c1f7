"""The runtime: a parent that runs no user code, and children that do."""
