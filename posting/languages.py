"""The language of pages, mails and feeds. The texts in code and templates are the English ones."""

from flask import Flask
from flask_babel import Babel


def init_app(app: Flask) -> None:
    """Give templates `_`, `ngettext` and `trans`, which translate texts."""
    Babel(app, default_locale="en", default_timezone="UTC")
