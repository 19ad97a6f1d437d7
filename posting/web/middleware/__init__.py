"""WSGI middleware around the app."""
