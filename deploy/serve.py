"""Start gunicorn: `.venv/bin/python deploy/serve.py`.

Its configuration runs once before: gunicorn reads WEB_CONCURRENCY while it is imported, so that a
wrong value would be a traceback.
"""

import os
import runpy
import sys
from pathlib import Path

CONFIGURATION = str(Path(__file__).with_name("gunicorn.conf.py"))

os.chdir(Path(CONFIGURATION).parent.parent)  # where wsgi.py and .env are
runpy.run_path(CONFIGURATION)
sys.argv[1:] = ["-c", CONFIGURATION, "wsgi:app"]
runpy.run_module("gunicorn", run_name="__main__")
