"""Hosts and proxies: which hosts are served, and the IP address of a client behind proxies."""

from ipaddress import IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from flask import Flask, current_app, request
from werkzeug.exceptions import BadRequest
from werkzeug.middleware.proxy_fix import ProxyFix

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class OtherHost(BadRequest):
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

    Flask's TRUSTED_HOSTS is case-sensitive, and refuses every IPv6 address.
    """
    if public_url := current_app.config["PUBLIC_URL"]:
        host = urlsplit(f"//{request.host}").hostname
        if host not in {urlsplit(public_url).hostname, *LOOPBACK}:
            raise OtherHost


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
