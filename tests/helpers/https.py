"""An HTTPS server in the process of a test."""

import re
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Thread

ANSWER = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nRetry-After: 30\r\n\r\nok"

Certificate = tuple[Path, Path]  # the files of the key and of the certificate


def make_certificate(folder: Path) -> Certificate:
    """Make the key and the certificate of a server for the names of the tests."""
    key, file = folder / "key.pem", folder / "cert.pem"
    names = "subjectAltName=DNS:localhost,DNS:push.example,IP:127.0.0.2"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", names, "-keyout", key, "-out", file),
        ],
        check=True,
        capture_output=True,
    )
    return key, file


class Listener:
    """An HTTPS server with one answer for all requests, which it keeps."""

    def __init__(self, certificate: Certificate, answer: Callable[[], Iterable[bytes]]) -> None:
        key, file = certificate
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(file, key)
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.requests: list[bytes] = []
        self.connections = 0
        Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                self.connections += 1
                with suppress(OSError), self._context.wrap_socket(client, server_side=True) as tls:
                    request = tls.recv(65_536)
                    head, _, body = request.partition(b"\r\n\r\n")
                    found = re.search(rb"Content-Length: (\d+)", head)
                    length = int(found[1]) if found else 0
                    self.requests.append(
                        request if len(body) == length else request + tls.recv(length)
                    )
                    for part in self._answer():
                        tls.sendall(part)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
