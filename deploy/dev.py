"""Start Flask's server for development: `.venv/bin/python deploy/dev.py`.

It reloads when the code changes, and has the debugger. It listens where `deploy/serve.py` would.
"""

import os
import sys
from pathlib import Path

from flask.cli import cli
from werkzeug.serving import is_running_from_reloader

FOLDER = Path(__file__).resolve().parent.parent

os.chdir(FOLDER)  # the folder of wsgi.py and .env
sys.path.insert(0, str(FOLDER))

from posting import config  # noqa: E402 - after the path

try:
    config.load_env_files()
    settings = config.load_server()
    if not is_running_from_reloader():  # else the first process has the port
        config.require_port(settings)
except config.StartError as error:
    error.exit()

host, port = settings["BIND"].replace("unix:", "unix://", 1), settings["PORT"]
cli.main(["run", "--debug", "--host", host, "--port", str(port)], prog_name="flask")
