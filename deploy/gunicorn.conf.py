"""How gunicorn serves Posting: `gunicorn -c deploy/gunicorn.conf.py wsgi:app`.

BIND, PORT and WEB_CONCURRENCY (the number of workers) can be set in the environment.
"""

import os

bind = f"{os.environ.get('BIND', '127.0.0.1')}:{os.environ.get('PORT', '8000')}"
workers = int(os.environ.get("WEB_CONCURRENCY") or os.cpu_count() or 1)

# Threads keep connections open and slow clients apart; the database pool holds 8 a worker.
worker_class = "gthread"
threads = 4

# A mistake in the settings is told once, and workers share what the start has loaded.
preload_app = True

control_socket_disable = True
