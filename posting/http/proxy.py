"""Which hosts are answered, who comes from where, and how much of what proxies say is believed."""

from ipaddress import IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from flask import Flask, current_app, request
from werkzeug.exceptions import BadRequest
from werkzeug.middleware.proxy_fix import ProxyFix

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def init_app(app: Flask) -> None:
    """Trust X-Forwarded-* from the configured proxies alone, and the public host alone."""
    if hops := app.config["PROXY_HOPS"]:
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]  # as Flask says to add middleware
            app.wsgi_app, x_for=hops, x_proto=hops, x_host=hops, x_prefix=hops
        )


class OtherHost(BadRequest):
    description = "This host is not served here."


def refuse_other_hosts() -> None:
    """Raise 400 unless the request is for the public host or a loopback name.

    Flask's TRUSTED_HOSTS compares names with their case, and refuses every IPv6 address.
    """
    if not current_app.config["PUBLIC_URL"]:
        return
    public = urlsplit(current_app.config["PUBLIC_URL"]).hostname
    if urlsplit(f"//{request.host}").hostname not in {public, *LOOPBACK}:
        raise OtherHost


def client_ip() -> str:
    """Return where a request comes from: an IPv4 address, an IPv6 network of 64 bits, or ""."""
    try:
        found = ip_address(_without_port(request.remote_addr or ""))
    except ValueError:  # a Unix socket's peer has none
        return ""
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or ip_network((found, 64), strict=False).network_address
    return str(found)


def _without_port(peer: str) -> str:
    """Return the address alone of 203.0.113.7:5123 and [2001:db8::1]:80, as some proxies say it."""
    if peer.startswith("["):
        return peer[1:].partition("]")[0]
    return peer.partition(":")[0] if peer.count(":") == 1 else peer
