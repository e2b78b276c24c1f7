"""The REST API: everything that the admin can do, for other languages and for scripts.

The project mounts it: `path("api/v1/", include("taskqueue.api.urls"))`. It has its own permissions,
throttles, pagination and renderers; the project's authentication identifies the user.
"""
