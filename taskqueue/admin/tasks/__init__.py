"""Tasks in the admin: the list with its search, the page of a task, and its buttons and forms."""
