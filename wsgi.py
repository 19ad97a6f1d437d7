"""The WSGI app of a checkout: `flask` finds it here, and gunicorn as `wsgi:app`."""

from posting.wsgi import app

__all__ = ["app"]
