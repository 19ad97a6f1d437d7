"""Requests to URLs that members give, such as those of push services.

A request goes only to public addresses, by HTTPS, unless the operator allows others for webhooks.
The address that is checked is the one to which it connects, since a name can have another address
at the next lookup. Redirects are not followed.
"""

import errno
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.client import HTTP_PORT, HTTPS_PORT, HTTPConnection, HTTPException
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from threading import Timer
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import urlsplit

TIMEOUT = 5.0  # seconds for the whole request, unless the lookup of the name takes longer
TOO_SLOW = "It takes more than five seconds"
MAX_ADDRESSES = 3  # of a name, which are tried
MAX_URL = 1000  # characters
# Networks of IPv6 whose addresses end with one of IPv4 to which a gateway may lead (RFC 6052).
_GATEWAYS = [ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48")]


class NotPublicError(OSError):
    """The host has an address that is not public."""


class Answer(NamedTuple):
    """A response: its status, and the seconds of its Retry-After. Its body is not read."""

    status: int
    retry_after: int | None


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address is public, and so is an address of IPv4 that it contains."""
    if isinstance(address, IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if any(address in network for network in _GATEWAYS):
            inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
        if any(each is not None and not is_public(each) for each in inner):
            return False
        if address.ipv4_mapped:
            return True
        if address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def is_url(url: str, *, with_http: bool = False) -> bool:
    """Return whether a URL is one to which a request may go, as far as its text says.

    It has to be an https URL, or an http URL with `with_http`.
    """
    if not url.isascii() or not url.isprintable() or " " in url or len(url) > MAX_URL:
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
        (parts.hostname or "").encode("idna")  # which the lookup does
    except ValueError:
        return False
    has_host = bool(parts.hostname) and "@" not in parts.netloc
    has_scheme = parts.scheme == "https" or (with_http and parts.scheme == "http")
    return has_scheme and has_host and port != 0 and not parts.fragment


def post(url: str, body: bytes, headers: Mapping[str, str], *, private: bool = False) -> Answer:
    """Send a POST request, and return the response.

    With `private`, addresses that are not public are allowed, and http URLs. Raise NotPublicError,
    or OSError for every other failure.
    """
    parts = urlsplit(url)
    is_secure = parts.scheme == "https"
    if not (is_secure or private):
        raise NotPublicError(errno.EACCES, "The URL is not an https URL")
    connection = _Connection(parts.hostname or "", parts.port, is_secure, private=private)
    timer = Timer(TIMEOUT, connection.break_off)  # a timeout would count for each part of it
    timer.daemon = True
    timer.start()
    try:
        path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        connection.request("POST", path, body, dict(headers))
        response = connection.getresponse()
        if connection.is_late:  # what was cut off looks like an end
            raise TimeoutError
        return Answer(response.status, _seconds(response.getheader("Retry-After")))
    except (HTTPException, UnicodeError) as error:
        reason = TOO_SLOW if connection.is_late else f"No HTTP response ({type(error).__name__})"
        raise OSError(errno.EPROTO, reason) from None
    except OSError as error:
        if connection.is_late or isinstance(error, TimeoutError):
            raise OSError(errno.ETIMEDOUT, TOO_SLOW) from None
        raise
    finally:
        timer.cancel()
        connection.close()


def _seconds(value: str | None) -> int | None:
    """Return the seconds of a Retry-After. A date there counts as none."""
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 7 else None


class _Connection(HTTPConnection):
    """A connection whose address is checked. The certificate must be that of the name."""

    sock: Any

    def __init__(self, host: str, port: int | None, is_secure: bool, *, private: bool) -> None:
        self.default_port = HTTPS_PORT if is_secure else HTTP_PORT
        super().__init__(host, port or self.default_port, timeout=TIMEOUT)
        self._context = ssl.create_default_context() if is_secure else None
        self._private = private
        self._end = monotonic() + TIMEOUT
        self.is_late = False

    def connect(self) -> None:
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        addresses = [str(each[4][0]) for each in found]
        if not self._private and not all(is_public(ip_address(each)) for each in addresses):
            raise NotPublicError(errno.EACCES, "The address is not a public one")
        self.sock = self._connect_to_one_of(addresses)
        self.sock.settimeout(TIMEOUT)
        if self._context:
            self.sock = self._context.wrap_socket(
                self.sock, server_hostname=self.host, do_handshake_on_connect=False
            )
        self._require_time()  # from here on, `break_off` has a socket to close
        if self._context:
            self.sock.do_handshake()

    def _require_time(self) -> float:
        """Return the seconds that are left. Raise TimeoutError if there are none."""
        seconds = self._end - monotonic()
        if self.is_late or seconds <= 0:
            raise TimeoutError
        return seconds

    def _connect_to_one_of(self, addresses: Sequence[str]) -> socket.socket:
        *others, last = addresses[:MAX_ADDRESSES]
        seconds = self._require_time() / (len(others) + 1)
        for address in others:
            with suppress(OSError):  # such as one of IPv6, on a machine without it
                return socket.create_connection((address, self.port), seconds)
        return socket.create_connection((last, self.port), seconds)

    def break_off(self) -> None:
        """Let the request fail, since it takes too long."""
        self.is_late = True
        if sock := self.sock:
            with suppress(OSError):
                # Of the connection below TLS: another thread waits in the layer of TLS.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
