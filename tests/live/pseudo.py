"""The service in a language that is made up, whose catalogs are in the folder of a variable."""

import os
from pathlib import Path

from posting.site.settings import EXTENSION
from tests.helpers.pseudo import add_languages

add_languages(Path(os.environ["PSEUDO_LANGUAGES"]))

from wsgi import app  # noqa: E402

# As `POSTING_LANGUAGE` does, which knows only the languages that the service has.
app.config["LANGUAGE"] = app.extensions[EXTENSION].defaults["LANGUAGE"] = os.environ["PSEUDO"]

__all__ = ["app"]
