"""Responses that are sent before the body is read do not reset the connection."""

import json
from collections import Counter
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
import requests

from tests.live.clients import scaled, sign_in

BODY = json.dumps({"title": "x", "content": "x" * 90_000}).encode()
JSON = {"Content-Type": "application/json"}
CROSS_SITE = JSON | {"Sec-Fetch-Site": "cross-site"}
TIMES = scaled(25, 100)  # for each kind of request
TOO_LARGE = b" " * 3_000_000


@pytest.fixture
def server(shared_server):
    return shared_server


@pytest.fixture
def send_all(figure):
    """Return a function that sends all kinds of requests in turn and checks the statuses."""

    def send_all(send, client):
        cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        kinds = [
            ("POST", "/posts", JSON, BODY, 401),
            ("POST", "/posts", CROSS_SITE, BODY, 403),
            ("POST", "/nothing", JSON, BODY, 404),
            ("PUT", "/posts", JSON, BODY, 405),
            ("POST", "/posts", JSON | {"Cookie": cookies}, TOO_LARGE, 413),
        ]
        statuses = Counter()
        for _ in range(TIMES):
            for *request, _ in kinds:
                statuses[send(*request)] += 1
        figure(", ".join(f"{n:,} times {status}" for status, n in sorted(statuses.items())))
        assert statuses == {status: TIMES for *_, status in kinds}

    return send_all


def test_through_nginx(start_site, send_all):
    site = start_site(WEB_CONCURRENCY="2")
    ada = sign_in(site.url, "ada", site.client())

    def send(method, path, headers, body):
        url = site.url + path
        return client.request(method, url, headers=headers, data=body, timeout=20).status_code

    with site.client() as client:
        send_all(send, ada)


def test_http_client_on_one_connection(server, send_all):
    def send(method, path, headers, body):
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        response.read()
        assert not response.will_close
        return response.status

    ada = sign_in(server.url, "ada")
    with closing(HTTPConnection(urlsplit(server.url).netloc, timeout=20)) as connection:
        send_all(send, ada)


def test_requests_on_one_connection(server, send_all):
    def send(method, path, headers, body):
        url = server.url + path
        response = client.request(method, url, headers=headers, data=body, timeout=20)
        assert response.headers["Connection"] == "keep-alive"
        return response.status_code

    ada = sign_in(server.url, "ada")
    with requests.Session() as client:
        send_all(send, ada)


def test_chunked_bodies(server):
    with requests.Session() as client:
        for _ in range(10):
            url = f"{server.url}/posts"
            response = client.post(url, headers=JSON, data=iter([BODY] * 10), timeout=20)
            assert response.status_code == 401
            assert response.headers["Connection"] == "keep-alive"


def test_a_body_beyond_the_limit_closes_the_connection(server):
    netloc = urlsplit(server.url).netloc
    for headers in ({"Content-Length": "12000000"}, {"Transfer-Encoding": "chunked"}):
        with closing(HTTPConnection(netloc, timeout=20)) as connection:
            connection.putrequest("POST", "/posts")
            for name, value in (JSON | headers).items():
                connection.putheader(name, value)
            connection.endheaders()
            if "Transfer-Encoding" in headers:
                connection.send(b"b71b00\r\n" + b" " * 12_000_000)
            with connection.getresponse() as response:
                assert (response.status, response.headers["Connection"]) == (401, "close")
                assert json.load(response)["status"] == 401


def test_the_next_request_on_the_connection_is_parsed_correctly(server):
    ada = sign_in(server.url, "ada")
    for _ in range(5):
        requests_in_turn = [
            ada.post(f"{server.url}/posts", data=b"{" * 100_000, headers=CROSS_SITE, timeout=20),
            ada.post(f"{server.url}/posts", data=BODY, headers=JSON, timeout=20),
            ada.get(f"{server.url}/posts", data=b"ignored", timeout=20),
        ]
        assert [response.status_code for response in requests_in_turn] == [403, 201, 200]
