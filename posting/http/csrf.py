"""Writes that another site makes a browser send are refused.

After `http.CrossOriginProtection` of Go 1.25: browsers say from where a request comes, in
Sec-Fetch-Site or at least in Origin, and other clients need no protection.
"""

from urllib.parse import urlsplit

from flask import Flask, current_app, request
from werkzeug.exceptions import Forbidden

from posting.db.engine import SAFE_METHODS


class CrossSiteWrite(Forbidden):
    description = "A browser sent this for another site, which may not write here."


def refuse_cross_site_writes() -> None:
    """Raise 403 for a write from an origin that is neither this one nor trusted."""
    if request.method in SAFE_METHODS:
        return
    site = request.headers.get("Sec-Fetch-Site", "")
    origin = request.headers.get("Origin", "")
    if (
        site in {"same-origin", "none"}
        or origin in current_app.config["TRUSTED_ORIGINS"]
        or (not site and (not origin or _host(origin) == request.host))
    ):
        return
    raise CrossSiteWrite


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


def init_app(app: Flask) -> None:
    if public_url := app.config["PUBLIC_URL"]:  # it is this origin, whatever a proxy makes of Host
        url = urlsplit(public_url)
        app.config["TRUSTED_ORIGINS"] |= {f"{url.scheme}://{url.netloc}".lower()}
