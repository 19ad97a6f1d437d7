"""HTTP conventions, the same for every endpoint. They know no feature."""
