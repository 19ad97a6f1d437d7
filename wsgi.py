"""What gunicorn serves (`gunicorn wsgi:app`) and what `flask` finds in this folder."""

import os
import sys

from posting import create_app
from posting.config import StartError

# The exit code that tells gunicorn not to start the worker again.
CANNOT_START = 3

os.umask(0o077)  # what is written, such as an SQLite database, is for the service's user alone

try:
    app = create_app()
except StartError as error:
    print(f"posting: {error.message}", file=sys.stderr)
    sys.exit(CANNOT_START)
