"""Requests that no HTTP library would send, over a plain socket to a real server."""

import socket
from urllib.parse import urlsplit

import pytest

HEAD = (
    b"POST /signup HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@pytest.fixture
def send(serve):
    address = urlsplit(serve().url)

    def send(data):
        with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
            connection.sendall(data)
            return int(connection.makefile("rb").readline().split()[1])

    return send


def test_no_request_makes_the_server_fail(send):
    assert send(HEAD + b"2\r\n{}\r\n0\r\n\r\n") == 422
    assert send(HEAD + b"110000\r\n" + b"x" * 0x110000 + b"\r\n0\r\n\r\n") == 413
    assert send(HEAD + b"zz\r\n{}\r\n0\r\n\r\n") == 400
    assert send(HEAD + b"2\r\n{}xx\r\n0\r\n\r\n") == 400
    assert send(b"GET /users/me HTTP/1.1\r\nHost: x\r\nCookie: session=\xff\xfe\r\n\r\n") == 401
    assert send(b"GET /posts HTTP/1.1\r\nHost: \xff<>\r\nIf-None-Match: \xff\r\n\r\n") == 200
    assert send(b"GET /posts/%FF%00 HTTP/1.1\r\nHost: x\r\nX-Request-ID: \xff\r\n\r\n") == 422
    assert send(b"GET / HTTP/1.0\r\n\r\n") == 302
