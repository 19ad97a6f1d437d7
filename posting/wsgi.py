"""The WSGI app for servers: `gunicorn posting.wsgi:app`."""

import gc
import os
import sys

import click
from flask.cli import load_dotenv
from flask.helpers import get_load_dotenv

from posting import create_app
from posting.config import StartError
from posting.db.engine import is_in_memory
from posting.db.migrations import DatabaseUnavailableError

# gunicorn and systemd do not retry after this exit code.
CANNOT_START = 3

os.umask(0o077)  # only the service's user may read files such as an SQLite database

try:
    if get_load_dotenv():
        try:
            load_dotenv()  # as `flask` does, so that commands and server have the same settings
        except (OSError, UnicodeDecodeError) as error:
            raise StartError(f"The settings in .env cannot be read ({error}).") from error
    app = create_app()
    with app.app_context():
        if is_in_memory() and not click.get_current_context(silent=True):
            raise StartError(
                "POSTING_DATABASE_URL is an in-memory database, and each worker would have its "
                "own. Use a file: sqlite:///posting.db"
            )
except StartError as error:
    print(f"posting: {error.message}", file=sys.stderr)
    sys.exit(1 if isinstance(error, DatabaseUnavailableError) else CANNOT_START)

# What is imported stays until the end, so there is no garbage to find in it. Otherwise a command
# would search it when it exits, and a worker would copy its memory, which is shared until a fork.
gc.freeze()
