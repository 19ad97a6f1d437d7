"""The WSGI app for servers: `gunicorn posting.wsgi:app`."""

import atexit
import gc
import os
from threading import Timer

import click
from werkzeug.serving import is_running_from_reloader

from posting import create_app
from posting.config import StartError, load_env_files, server_url
from posting.db.engine import close_connections, is_in_memory
from posting.invitations.first_run import describe_first_run
from posting.outbox import delivery
from posting.posts.deletion import finish_deletions

os.umask(0o077)  # only the service's user may read files such as an SQLite database

try:
    load_env_files()
    app = create_app()
    command = click.get_current_context(silent=True)
    with app.app_context():
        if is_in_memory() and not command:
            raise StartError(
                "POSTING_DATABASE_URL is an in-memory database, and each worker would have its "
                "own. Use a file: sqlite:///posting.db"
            )
except StartError as error:
    error.exit()

if command is None or command.info_name == "run":
    # Later, an upgrade may have replaced the files of this version.
    for name in app.jinja_env.list_templates():
        app.jinja_env.get_template(name)
    with app.app_context():
        finish_deletions()  # of a process that was killed
        if not is_in_memory():
            close_connections()  # workers that are forked later must not share a connection


def is_serving(run: click.Context) -> bool:
    """Return whether this process of `flask run` serves: of two, the child of the reloader does."""
    reloads = app.debug if run.params["reload"] is None else run.params["reload"]
    return not reloads or is_running_from_reloader()


def print_first_run() -> None:
    """Print the link for the first moderator, if there is none, for `flask run`.

    Flask prints several lines after it has imported this module, so the link waits for a second.
    gunicorn.conf.py prints the link of gunicorn.
    """
    with_link = app.config["LOG_FORMAT"] == "text"
    message = describe_first_run(app, server_url(), with_link=with_link)
    if message:
        timer = Timer(1, click.echo, [message])
        timer.daemon = True
        timer.start()


if command and command.info_name == "run" and is_serving(command):
    print_first_run()
    delivery.start(app)  # gunicorn.conf.py does this for each worker of gunicorn


@atexit.register
def close() -> None:
    """Close all connections, since SQLite moves its log into the database with the last one."""
    with app.app_context():
        close_connections()


# What is imported stays until the end, so the garbage collector need not search it. A worker would
# copy the memory that it shares with the others, and a command would take longer to exit.
gc.freeze()
