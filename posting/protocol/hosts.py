"""Which hosts are answered, and how much of what proxies say is believed."""

from urllib.parse import urlsplit

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

LOOPBACK = ["localhost", "127.0.0.1", "[::1]"]


def init_app(app: Flask) -> None:
    """Trust X-Forwarded-* from the configured proxies alone, and the public host alone."""
    if hops := app.config["PROXY_HOPS"]:
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=hops, x_proto=hops, x_host=hops, x_prefix=hops
        )
    if public_url := app.config["PUBLIC_URL"]:
        app.config["TRUSTED_HOSTS"] = [urlsplit(public_url).hostname, *LOOPBACK]
