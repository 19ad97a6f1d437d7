"""Requests to URLs that strangers give: only to public addresses, and within limits."""

import socket
import ssl
import time
from contextlib import contextmanager
from ipaddress import ip_address
from threading import Event, Timer

import pytest

from posting import outbound
from posting.outbound import NotPublicError, is_public, is_url, post

PRIVATE = [
    *("127.0.0.1", "127.8.9.10", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
    *("0.0.0.0", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "2002:7f00:1::", "2002:a00:1::"),
    *("64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::a9fe:a9fe", "fec0::1"),
]
PUBLIC = ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450:4001:80b::200e", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_not_public(address):
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_public(address):
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        *("http://example.org/", "//example.org/", "ftp://example.org", "https://", "https:///x"),
        *("https://a:b@example.org/", "https://a@example.org/", "https://example.org:0/"),
        *("https://example.org:99999/", "https://example.org/#x", "https://exämple.org/"),
        *("https://example.org/\r\nX: y", "https://example.org/a b", "https://[::1/", ""),
        "https://example.org/" + "x" * 1000,
    ],
)
def test_other_texts_are_no_https_urls(url):
    assert not is_url(url)


@pytest.mark.parametrize(
    "url", ["https://example.org", "https://example.org:8443/a?b=c", "https://[2606:4700::1]/"]
)
def test_an_https_url_is_one(url):
    assert is_url(url)


@contextmanager
def resolving(monkeypatch, *answers):
    """Let names have the addresses of `answers`, each lookup the next ones."""
    lookups = iter(answers)

    def resolve(_host, port, **_options):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in next(lookups)]

    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", resolve)
        yield


def test_a_request_arrives(listen):
    server = listen()
    answer = post(f"https://localhost:{server.port}/a?b=c", b"body", {"TTL": "60"}, private=True)
    assert answer == (201, 30)
    [request] = server.requests
    assert request.startswith(b"POST /a?b=c HTTP/1.1\r\n")
    assert b"\r\nTTL: 60\r\n" in request


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_a_name_of_a_private_address_is_refused(listen, host):
    server = listen()
    with pytest.raises(NotPublicError):
        post(f"https://{host}:{server.port}/", b"", {})
    assert server.connections == 0


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["::ffff:10.0.0.1"]])
def test_one_private_address_of_a_name_is_enough(monkeypatch, addresses):
    with resolving(monkeypatch, addresses), pytest.raises(NotPublicError):
        post("https://push.example/", b"", {})


def test_a_second_answer_of_the_dns_has_no_effect(monkeypatch, listen):
    """The name is looked up once, and the address that was checked is the one that is used."""
    server = listen()
    monkeypatch.setattr(outbound, "is_public", lambda address: str(address) == "127.0.0.1")
    real, asked = socket.create_connection, []

    def connect(address, timeout):
        asked.append(address)
        return real(address, timeout)

    monkeypatch.setattr(socket, "create_connection", connect)
    answers = [["127.0.0.1"], ["10.0.0.1"]]
    lookups = iter(answers)
    original = socket.getaddrinfo

    def resolve(host, port, *arguments, **options):
        if host == "push.example":
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(lookups)[0], port))]
        return original(host, port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert post(f"https://push.example:{server.port}/", b"", {}).status == 201
    assert asked == [("127.0.0.1", server.port)]


def test_a_redirect_is_not_followed(listen):
    other = listen()
    redirect = f"HTTP/1.1 302 Found\r\nLocation: https://localhost:{other.port}/\r\n\r\n"
    server = listen(redirect.encode())
    assert post(f"https://localhost:{server.port}/", b"", {}, private=True).status == 302
    assert other.connections == 0


def test_the_certificate_must_be_that_of_the_name(listen):
    server = listen()
    with pytest.raises(ssl.SSLCertVerificationError):
        post(f"https://127.0.0.1:{server.port}/", b"", {}, private=True)


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nConnection: close\r\nA: "])
def test_a_head_without_end_is_broken_off(monkeypatch, listen, head):
    monkeypatch.setattr(outbound, "TIMEOUT", 0.5)

    def trickle():
        yield head
        while True:
            time.sleep(0.05)
            yield b"H"

    server = listen(answer=trickle)
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the moment
        post(f"https://localhost:{server.port}/", b"", {}, private=True)


@pytest.mark.parametrize("version", [b"HTTP/1.0", b"HTTP/1.1"])
@pytest.mark.parametrize("header", [b"", b"Connection: close\r\n", b"Content-Length: 900\r\n"])
def test_a_body_without_end_is_not_waited_for(listen, version, header):
    read = Event()

    def trickle():
        yield version + b" 201 Created\r\n" + header + b"\r\n"
        read.wait(20)
        yield b"x"

    server = listen(answer=trickle)
    assert post(f"https://localhost:{server.port}/", b"", {}, private=True).status == 201
    read.set()


def test_a_handshake_without_end_is_broken_off(monkeypatch):
    """By the time of the whole request, not by that of each part of it."""
    monkeypatch.setattr(outbound, "TIMEOUT", 60)
    monkeypatch.setattr(outbound, "Timer", lambda _seconds, function: Timer(0.2, function))
    started = time.monotonic()
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,  # which never answers
        pytest.raises(OSError, match="more than five seconds"),
    ):
        post(f"https://127.0.0.1:{listener.getsockname()[1]}/", b"", {}, private=True)
    assert time.monotonic() - started < 30


def test_all_addresses_of_a_name_share_the_time(monkeypatch):
    asked = []

    def connect(address, timeout):
        asked.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", connect)
    addresses = [f"8.8.8.{number}" for number in range(1, 100)]
    with resolving(monkeypatch, addresses), pytest.raises(OSError, match="more than five seconds"):
        post("https://push.example/", b"", {})
    assert len(asked) == 3
    assert sum(asked) <= outbound.TIMEOUT
    assert asked == [asked[0]] * 3


@pytest.mark.parametrize("host", ["push..example", "x" * 64 + ".example"])
def test_a_name_that_no_lookup_takes_is_a_failure(host):
    assert not is_url(f"https://{host}/")
    with pytest.raises(OSError, match="UnicodeError"):
        post(f"https://{host}/", b"", {})


def test_a_server_that_is_late_at_each_step_is_broken_off(monkeypatch, listen):
    """The time ends during the handshake, when there is no socket to close."""
    monkeypatch.setattr(outbound, "TIMEOUT", 0.5)
    server = listen()
    original = ssl.SSLContext.wrap_socket

    def wrap(context, *arguments, **options):
        wrapped = original(context, *arguments, **options)
        if "server_hostname" in options:
            time.sleep(0.7)
        return wrapped

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", wrap)
    with pytest.raises(OSError, match="more than five seconds"):
        post(f"https://localhost:{server.port}/", b"", {}, private=True)
    assert server.requests == []


def test_an_http_url_is_refused_unless_private_addresses_are_allowed():
    with pytest.raises(NotPublicError, match="not an https URL"):
        post("http://example.org/", b"", {})


def test_what_is_not_http_is_a_failure(listen):
    server = listen(b"SSH-2.0-OpenSSH_9.2\r\n")
    with pytest.raises(OSError, match="No HTTP response"):
        post(f"https://localhost:{server.port}/", b"", {}, private=True)
