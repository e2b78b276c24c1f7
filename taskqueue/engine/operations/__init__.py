"""One verb done to many tasks in the background: asked for here, served by any worker."""
