"""The WSGI app for servers: `gunicorn posting.wsgi:app`."""

import atexit
import gc
import os

import click

from posting import create_app
from posting.config import StartError, load_env_files
from posting.db.engine import close_connections, is_in_memory

os.umask(0o077)  # only the service's user may read files such as an SQLite database

try:
    load_env_files()
    app = create_app()
    with app.app_context():
        if is_in_memory() and not click.get_current_context(silent=True):
            raise StartError(
                "POSTING_DATABASE_URL is an in-memory database, and each worker would have its "
                "own. Use a file: sqlite:///posting.db"
            )
except StartError as error:
    error.exit()


@atexit.register
def close() -> None:
    """Close all connections, since SQLite moves its log into the database with the last one."""
    with app.app_context():
        close_connections()


# What is imported stays until the end, so the garbage collector need not search it. A worker would
# copy the memory that it shares with the others, and a command would take longer to exit.
gc.freeze()
