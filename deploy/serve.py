"""Start gunicorn: `.venv/bin/python deploy/serve.py`.

The configuration runs once before gunicorn is imported. gunicorn reads WEB_CONCURRENCY during its
import, so that an invalid value would end in a traceback instead of a message.
"""

import os
import runpy
import sys
from pathlib import Path

CONFIGURATION = str(Path(__file__).resolve().with_name("gunicorn.conf.py"))

# glibc gives threads arenas of their own, and each arena keeps the memory that a large page took.
# With two arenas, a worker stays under 105 MiB (tests/live/test_hostile_texts.py). glibc reads the
# variable when a program starts, so this program starts itself again.
if "MALLOC_ARENA_MAX" not in os.environ:
    os.environ["MALLOC_ARENA_MAX"] = "2"
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - no shell is needed

os.chdir(Path(CONFIGURATION).parent.parent)  # the folder of wsgi.py and .env
runpy.run_path(CONFIGURATION)
sys.argv[1:] = ["-c", CONFIGURATION, "wsgi:app"]
runpy.run_module("gunicorn", run_name="__main__")
