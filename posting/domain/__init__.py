"""Rules that concern more than one table."""
