"""Sessions, passwords and the current user."""
