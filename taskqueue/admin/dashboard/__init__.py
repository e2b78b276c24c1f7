"""The dashboard: an overview on one page that refreshes itself."""
