"""How gunicorn serves Posting: `gunicorn -c deploy/gunicorn.conf.py wsgi:app`.

BIND, PORT and WEB_CONCURRENCY (the number of workers) can be set in the environment.
"""

import os

bind = f"{os.environ.get('BIND', '127.0.0.1')}:{os.environ.get('PORT', '8000')}"
workers = int(os.environ.get("WEB_CONCURRENCY") or os.cpu_count() or 1)

# Threads keep slow clients apart, and images that wait to be decoded hold up to four of them. The
# database pool has a connection for each.
worker_class = "gthread"
threads = 8

# A mistake in the settings is told once, and workers share what the start has loaded.
preload_app = True

control_socket_disable = True
