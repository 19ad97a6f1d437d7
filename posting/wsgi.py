"""The WSGI app for servers: `gunicorn posting.wsgi:app`."""

import atexit
import gc
import os
import sys

import click
from flask.cli import load_dotenv
from flask.helpers import get_load_dotenv

from posting import create_app
from posting.config import StartError
from posting.db.engine import db, is_in_memory
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
        # SQLite moves its log into the database when the last connection is closed.
        atexit.register(db.engine.dispose)
except StartError as error:
    print(f"posting: {error.message}", file=sys.stderr)
    sys.exit(1 if isinstance(error, DatabaseUnavailableError) else CANNOT_START)

# What is imported stays until the end, so the garbage collector need not search it. A worker would
# copy the memory that it shares with the others, and a command would take longer to exit.
gc.freeze()
