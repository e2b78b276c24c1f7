"""Tasks in the admin: the list with its search, the page of one, and what people do to them."""
