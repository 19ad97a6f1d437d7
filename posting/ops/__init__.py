"""Operator tools behind the `flask` commands: backup, archive, doctor and demo."""
