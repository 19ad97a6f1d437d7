"""Exit with 1 unless the service is ready: the health check of the container."""

import os
import socket
import sys
from http.client import HTTPConnection, HTTPException

ANY = {"", "0.0.0.0", "::", "[::]"}  # noqa: S104 - compared with, not bound to
SECONDS = 5

bind = os.environ.get("BIND", "")
connection = HTTPConnection(
    "127.0.0.1" if bind in ANY else bind, int(os.environ.get("PORT") or 8000), timeout=SECONDS
)
try:
    if bind.startswith("unix:"):
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(SECONDS)
        connection.sock.connect(bind.removeprefix("unix:"))
    connection.request("GET", "/readyz", headers={"Host": "localhost"})
    response = connection.getresponse()
    sys.exit(None if response.status == 200 else response.read().decode())
except (OSError, HTTPException) as error:
    sys.exit(f"The service does not answer: {error}")
