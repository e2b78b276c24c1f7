"""The admin's pages under themes that replace Django's look of the admin."""
