"""The REST API: everything that the admin can do, for other languages and for scripts.

The project includes it: `path("api/v1/", include("taskqueue.api.urls"))`. The API sets its own
permissions, throttles, pagination and renderers; requests use the project's authentication.
"""
