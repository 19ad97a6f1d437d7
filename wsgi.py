"""What gunicorn serves (`gunicorn wsgi:app`) and what `flask` finds in this folder."""

import os
import sys

from posting import create_app
from posting.config import StartError
from posting.migrations import DatabaseAwayError

# The exit code that tells gunicorn and systemd not to try again.
CANNOT_START = 3

os.umask(0o077)  # what is written, such as an SQLite database, is for the service's user alone

try:
    app = create_app()
except StartError as error:
    print(f"posting: {error.message}", file=sys.stderr)
    sys.exit(1 if isinstance(error, DatabaseAwayError) else CANNOT_START)
