"""Checks of an installation, for `flask doctor` and, as far as they are quick, for owners."""
