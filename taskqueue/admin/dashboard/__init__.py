"""The dashboard: how all is, on one page that keeps itself up to date."""
