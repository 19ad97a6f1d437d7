"""The `flask` commands of operators."""
