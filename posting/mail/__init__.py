"""Mails: the connection to a mail server, and the form of a mail."""
