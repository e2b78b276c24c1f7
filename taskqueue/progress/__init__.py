"""Progress for end users: pages show how far a task or workflow is, and nothing else.

See docs/progress.md.
"""

from taskqueue.progress.progress import Progress, progress_of

__all__ = ["Progress", "progress_of"]
