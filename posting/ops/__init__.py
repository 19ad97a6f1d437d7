"""Backup, archive, doctor and demo: the work of an operator."""
