"""Invitations, by which people sign up."""
