"""Absolute URLs, under the public URL where one is set."""

import re
from functools import cache
from typing import Any
from urllib.parse import quote

from flask import current_app, request, url_for

from posting.web.middleware.proxy import request_host


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
