"""Mails to members: their addresses and choices, what mails contain, and how they are sent."""
