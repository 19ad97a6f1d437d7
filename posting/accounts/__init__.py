"""Accounts: sign-up, sign-in, sessions and tokens."""
