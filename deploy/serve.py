"""Start gunicorn: `.venv/bin/python deploy/serve.py`.

The configuration runs once before gunicorn is imported. gunicorn reads WEB_CONCURRENCY during its
import, so that an invalid value would end in a traceback instead of a message.
"""

import os
import runpy
import sys
from pathlib import Path

CONFIGURATION = str(Path(__file__).with_name("gunicorn.conf.py"))

os.chdir(Path(CONFIGURATION).parent.parent)  # the folder of wsgi.py and .env
runpy.run_path(CONFIGURATION)
sys.argv[1:] = ["-c", CONFIGURATION, "wsgi:app"]
runpy.run_module("gunicorn", run_name="__main__")
