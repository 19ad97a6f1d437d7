"""HTTP conventions, the same for every endpoint."""
