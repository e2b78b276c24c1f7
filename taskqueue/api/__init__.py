"""The REST API: everything that the admin can do, for other languages and for scripts.

Mounted by the project: `path("api/v1/", include("taskqueue.api.urls"))`. Permissions, throttles,
pagination and renderers are its own; who a request is from, the project's authentication says.
"""
