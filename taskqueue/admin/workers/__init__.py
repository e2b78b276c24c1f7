"""Workers in the admin: which live, what each holds, and the buttons that quiet, stop and kill."""
