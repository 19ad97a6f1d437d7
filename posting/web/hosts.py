"""Hosts and addresses: which hosts are served, the URLs of the service, and the IP of a client."""

import re
from functools import cache, lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import quote, urlsplit

from flask import Flask, current_app, request, url_for
from werkzeug.exceptions import BadRequest
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.sansio.utils import get_host

from posting.config import is_base_url
from posting.web.errors import Coded

LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Load balancers and containers ask a server by its address. The responses contain no URL.
HEALTH = ("/healthz", "/readyz")


class NoHost(BadRequest):
    description = "The host of the request is neither a domain name nor an IP address."


class OtherHost(Coded, BadRequest):
    error_code = "other_host"
    description = "This host is not served here."


def init_app(app: Flask) -> None:
    """Trust the X-Forwarded-* headers of as many proxies as are configured."""
    if hops := app.config["PROXY_HOPS"]:
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]  # as Flask documents
            app.wsgi_app, x_for=hops, x_proto=hops, x_host=hops, x_prefix=hops
        )


def refuse_other_hosts() -> None:
    """Raise 400 unless the request is for the host of the public URL, if one is set, or a loopback.

    Checks of the health of the service may also name an IP address as the host.

    Without a public URL, the host may be any that can be part of a URL. Flask's TRUSTED_HOSTS is
    case-sensitive, and refuses every IPv6 address.
    """
    host = request_host()
    if public_url := current_app.config["PUBLIC_URL"]:
        name = re.sub(r":[0-9]+$", "", host).strip("[]").lower()
        is_served = name in {urlsplit(public_url).hostname, *LOOPBACK}
        if not is_served and not (request.path in HEALTH and _is_address(name)):
            raise OtherHost
    elif not _is_valid(host):
        raise NoHost


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def request_host() -> str:
    """Return the host of the request and its port, if that is not the default port.

    The host is empty if it has invalid characters.
    """
    if request.host:
        return request.host
    sent = request.headers.get("Host")
    if sent is None:  # HTTP/1.0 by a Unix socket
        return LOOPBACK[0]
    # Names in Docker networks may have underscores, which Werkzeug does not allow.
    return sent[: len(get_host(request.scheme, sent.replace("_", "-")))]


@lru_cache(maxsize=100)  # the parser takes 15 microseconds
def _is_valid(host: str) -> bool:
    """Return whether the parser of URLs accepts a host, of which Werkzeug checks the characters."""
    return is_base_url(f"http://{host}/")


def client_ip() -> str:
    """Return the client's IPv4 address, or the /64 network of its IPv6 address.

    It is empty for a client that is connected by a Unix socket.
    """
    peer = request.remote_addr or ""
    # Some proxies add a port: 203.0.113.7:5123 or [2001:db8::1]:80.
    if peer.startswith("["):
        peer = peer[1:].partition("]")[0]
    elif peer.count(":") == 1:
        peer = peer.partition(":")[0]
    try:
        address = ip_address(peer)
    except ValueError:
        return ""
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or ip_network((address, 64), strict=False).network_address
    return str(address)


def external_url(endpoint: str, **values: Any) -> str:
    """Return the absolute URL of an endpoint as clients reach it, prefix included."""
    return base_url() + url_for(endpoint, **values).removeprefix(request.script_root)


def base_url() -> str:
    """Return the absolute URL of the service, without a trailing slash."""
    if public_url := current_app.config["PUBLIC_URL"]:
        return str(public_url)
    return f"{request.scheme}://{request_host()}{quote(request.script_root)}"


@cache
def url_template(rule: str) -> str:
    """Return a route's path with its parameters in braces, such as `/posts/{id}`."""
    return re.sub(r"<(?:[^<>]*:)?(\w+)>", r"{\1}", rule)
