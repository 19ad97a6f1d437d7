"""What every answer carries: its request id, what caches and browsers may do with it, its ETag."""

import re
import secrets
from collections.abc import Iterable
from functools import partial

from flask import Flask, Response, current_app, g, request

from posting.http import etags, rate_limits
from posting.http.endpoint import anyone

_well_formed = re.compile(r"[A-Za-z0-9._-]{1,64}").fullmatch

REQUEST_ID = "X-Request-ID"
PUBLIC = "public, max-age=0, must-revalidate"
PRIVATE = "private, no-store"
ALWAYS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
BEHIND_HTTPS = (("Strict-Transport-Security", "max-age=31536000"),)
JSON_POLICY = "default-src 'none'; frame-ancestors 'none'"


def id_for(sent: str) -> str:
    """Return a request's id: the one that came with it if that is well-formed, else a new one."""
    return sent if _well_formed(sent) else secrets.token_urlsafe(10)


def identify_request() -> None:
    g.request_id = id_for(request.headers.get(REQUEST_ID, ""))


def finish(always: Iterable[tuple[str, str]], response: Response) -> Response:
    """Add the headers that do not depend on the view."""
    if response.status_code == 204:
        response.set_data(b"")
        response.headers.remove("Content-Type")
    etags.tag(response)
    rate_limits.finish(response)
    headers = response.headers
    headers.extend(always)
    headers.add(REQUEST_ID, g.request_id)
    if "Cache-Control" not in headers:
        headers.add("Cache-Control", PUBLIC if _anyone_may_read(response) else PRIVATE)
    if "Content-Security-Policy" not in headers:
        headers.add("Content-Security-Policy", JSON_POLICY)
    return response


def _anyone_may_read(response: Response) -> bool:
    view = current_app.view_functions.get(request.endpoint or "")
    return (
        request.method in {"GET", "HEAD"}
        and response.status_code in {200, 304}
        and getattr(view, "access", None) is anyone
    )


def init_app(app: Flask) -> None:
    https = (app.config["PUBLIC_URL"] or "").startswith("https:")
    app.before_request(identify_request)
    app.after_request(partial(finish, ALWAYS + BEHIND_HTTPS if https else ALWAYS))
