"""Requests that no HTTP library would send, over a plain socket to a real server."""

import json
import socket
from contextlib import ExitStack
from http.client import HTTPResponse
from urllib.parse import urlsplit

import pytest

HEAD = (
    b"POST /signup HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@pytest.fixture
def server(serve):
    return serve(WEB_CONCURRENCY="1")


@pytest.fixture
def connect(server):
    address = urlsplit(server.url)
    return lambda: socket.create_connection((address.hostname, address.port), timeout=20)


@pytest.fixture
def ask(connect):
    """Send bytes; return the answer as it comes."""

    def ask(data):
        with connect() as connection:
            connection.sendall(data)
            answer = HTTPResponse(connection)
            answer.begin()
            return answer, answer.read()

    return ask


@pytest.fixture
def send(ask):
    return lambda data: ask(data)[0].status


def test_no_request_makes_the_server_fail(send):
    assert send(HEAD + b"2\r\n{}\r\n0\r\n\r\n") == 422
    assert send(HEAD + b"150000\r\n" + b"x" * 0x150000 + b"\r\n0\r\n\r\n") == 413
    assert send(HEAD + b"zz\r\n{}\r\n0\r\n\r\n") == 400
    assert send(HEAD + b"2\r\n{}xx\r\n0\r\n\r\n") == 400
    assert send(b"GET /users/me HTTP/1.1\r\nHost: x\r\nCookie: session=\xff\xfe\r\n\r\n") == 401
    assert send(b"GET /posts HTTP/1.1\r\nHost: \xff<>\r\nIf-None-Match: \xff\r\n\r\n") == 200
    assert send(b"GET /posts/%FF%00 HTTP/1.1\r\nHost: x\r\nX-Request-ID: \xff\r\n\r\n") == 422
    assert send(b"GET / HTTP/1.0\r\n\r\n") == 302


def test_very_many_headers_are_refused(send):
    """A thousand of 8 KB each kept a worker busy for 10 seconds."""
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    assert send(head + b"".join(b"X-%d: y\r\n" % n for n in range(99)) + b"\r\n") == 200
    assert send(head + b"".join(b"X-%d: y\r\n" % n for n in range(100)) + b"\r\n") == 431


@pytest.mark.parametrize(
    "beginning",
    [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /signin HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n\r\n{",
    ],
    ids=["headers", "body"],
)
def test_requests_that_never_end_free_their_threads(connect, send, beginning):
    with ExitStack() as stack:
        for _ in range(8):  # as many as a worker has threads
            stack.enter_context(connect()).sendall(beginning)
        assert send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") == 200


@pytest.mark.parametrize(
    ("request_line", "header", "refusal"),
    [
        (b"GET /posts?" + b"x" * 9000 + b" HTTP/1.1", b"X: x", "414 URI Too Long"),
        (b"GET / HTTP/1.1", b"X: " + b"x" * 9000, "431 Request Header Fields Too Large"),
        (b"GET / HTTP/1.1", b"<no colon>", "400 Bad Request"),
        (b"GET /", b"X: x", "400 Bad Request"),
        (b"GET / HTTP/1.1", b"Transfer-Encoding: odd", "501 Not Implemented"),
    ],
)
def test_gunicorn_refuses_with_problems(ask, server, request_line, header, refusal):
    answer, body = ask(request_line + b"\r\nHost: localhost\r\n" + header + b"\r\n\r\n")
    problem = json.loads(body)
    assert f"{answer.status} {answer.reason}" == refusal
    assert f"{problem['status']} {problem['title']}" == refusal
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Connection"] == "close"
    assert problem["detail"]
    assert problem["type"] == "about:blank"
    assert problem["request_id"] == answer.headers["X-Request-ID"]
    assert problem["request_id"] in server.log.read_text()
