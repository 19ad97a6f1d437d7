"""The WSGI app of a checkout, for `flask` and for gunicorn (`wsgi:app`)."""

from posting.wsgi import app

__all__ = ["app"]
