"""Cross-origin protection (CSRF).

Browsers say where a request comes from, in Sec-Fetch-Site or at least in Origin. Other clients need
no protection. The rules are the same as in `http.CrossOriginProtection` of Go 1.25.

A request with a token needs no protection where the token counts and not the cookie: no browser
adds a token by itself.
"""

from urllib.parse import urlsplit

from flask import current_app, request
from werkzeug.exceptions import Forbidden

from posting.config import everyone_may_read
from posting.web.endpoint import SAFE_METHODS, current_endpoint
from posting.web.headers import has_bearer_token
from posting.web.middleware.proxy import request_host
from posting.web.problems import Coded


class CrossSiteWrite(Coded, Forbidden):
    error_code = "cross_origin"
    description = "A page of another site may not send writes."


def refuse_cross_site_writes() -> None:
    """Raise 403 for a write from an origin that is neither this service's own nor trusted."""
    if request.method in SAFE_METHODS:
        return
    site = request.headers.get("Sec-Fetch-Site", "")
    origin = request.headers.get("Origin", "")
    if site in {"same-origin", "none"} or origin in current_app.config["TRUSTED_ORIGINS"]:
        return
    if public_url := current_app.config["PUBLIC_URL"]:  # a proxy may pass on another Host
        url = urlsplit(public_url)
        if origin == f"{url.scheme}://{url.netloc}":
            return
    if not site and (not origin or _host(origin) == request_host()):
        return
    if everyone_may_read(current_app.config) and _is_by_token():
        return
    raise CrossSiteWrite


def _is_by_token() -> bool:
    """Return whether the request has a token, and the endpoint ignores its cookie for that."""
    endpoint = current_endpoint()
    takes_token = endpoint is not None and {"token": []} in endpoint.access.security
    return takes_token and has_bearer_token(request.environ)


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None
