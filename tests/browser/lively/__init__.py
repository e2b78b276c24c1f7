"""A shop at work: rows for every page to show something of what it can show."""
