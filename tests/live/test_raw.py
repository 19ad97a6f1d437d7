"""Malformed and unfinished requests, sent to a real server over a plain socket."""

import json
import socket
from contextlib import ExitStack
from http.client import HTTPResponse
from urllib.parse import urlsplit

import pytest
import requests

from posting.web.errors import problem_codes
from tests.live.clients import scaled
from tests.live.sites import CONFIG, ROOT

HEAD = (
    b"POST /signup HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@pytest.fixture
def server(shared_server):
    return shared_server


def connect(server):
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname, address.port), timeout=20)


@pytest.fixture
def exchange(server):
    """Send bytes, and return the response and its body."""

    def exchange(data):
        with connect(server) as connection:
            connection.sendall(data)
            response = HTTPResponse(connection)
            response.begin()
            return response, response.read()

    return exchange


@pytest.fixture
def send(exchange):
    return lambda data: exchange(data)[0].status


def test_no_request_causes_a_server_error(server, send):
    assert send(HEAD + b"2\r\n{}\r\n0\r\n\r\n") == 422
    assert send(HEAD + b"150000\r\n" + b"x" * 0x150000 + b"\r\n0\r\n\r\n") == 413
    assert send(HEAD + b"zz\r\n{}\r\n0\r\n\r\n") == 400
    assert send(HEAD + b"2\r\n{}xx\r\n0\r\n\r\n") == 400
    cookie = b"session-%d=\xff\xfe" % urlsplit(server.url).port
    assert send(b"GET /users/me HTTP/1.1\r\nHost: x\r\nCookie: " + cookie + b"\r\n\r\n") == 401
    assert send(b"GET /posts HTTP/1.1\r\nHost: \xff<>\r\nIf-None-Match: \xff\r\n\r\n") == 400
    assert send(b"GET /posts HTTP/1.1\r\nHost: x\r\nIf-None-Match: \xff\r\n\r\n") == 200
    assert send(b"GET /feed.atom HTTP/1.1\r\nHost: 1.2.3.999\r\n\r\n") == 400
    assert send(b"GET /posts/%FF%00 HTTP/1.1\r\nHost: x\r\nX-Request-ID: \xff\r\n\r\n") == 422
    assert send(b"GET / HTTP/1.0\r\n\r\n") == 200


def test_more_than_a_hundred_headers_get_431(send):
    """A thousand headers of 8 KB kept a worker busy for 10 seconds."""
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
def test_unfinished_requests_free_their_threads(serve, tmp_path, beginning):
    server = serve(WEB_CONCURRENCY="1", config=scaled(impatient_config(tmp_path), CONFIG))
    with ExitStack() as stack:
        for _ in range(8):  # as many as the threads of a worker
            stack.enter_context(connect(server)).sendall(beginning)
        assert requests.get(f"{server.url}/healthz", timeout=20).status_code == 200


def impatient_config(folder):
    """Return a copy of the configuration that waits 1 second for a request, and not 10."""
    shipped = (ROOT / CONFIG).read_text()
    assert shipped.count("RECEIVE_SECONDS = 10\n") == 1
    changed = folder / "gunicorn.conf.py"
    changed.write_text(shipped.replace("RECEIVE_SECONDS = 10\n", "RECEIVE_SECONDS = 1\n"))
    return changed


@pytest.mark.parametrize(
    ("request_line", "header", "refusal"),
    [
        (b"GET /posts?" + b"x" * 9000 + b" HTTP/1.1", b"X: x", "414 URI Too Long"),
        (b"GET / HTTP/1.1", b"X: " + b"x" * 9000, "431 Request Header Fields Too Large"),
        (b"GET / HTTP/1.1", b"<no colon>", "400 Bad Request"),
        (b"GET /", b"X: x", "400 Bad Request"),
        (b"GET / HTTP/1.1", b"Transfer-Encoding: odd", "501 Not Implemented"),
        (b"GET / HTTP/1.1", b"Expect: odd", "417 Expectation Failed"),
    ],
)
def test_gunicorn_refuses_with_problem_details(exchange, server, request_line, header, refusal):
    response, body = exchange(request_line + b"\r\nHost: localhost\r\n" + header + b"\r\n\r\n")
    problem = json.loads(body)
    assert f"{response.status} {response.reason}" == refusal
    assert f"{problem['status']} {problem['title']}" == refusal
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.headers["Connection"] == "close"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert problem["code"] in problem_codes()
    assert problem["detail"]
    assert problem["type"] == "about:blank"
    assert problem["request_id"] == response.headers["X-Request-ID"]
    assert problem["request_id"] in server.log.read_text()
