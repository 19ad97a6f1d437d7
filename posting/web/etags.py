"""Conditional requests (RFC 9110, section 13): ETag, If-None-Match and If-Match.

The ETag of a post or comment has two parts: its version, which `If-Match` compares, and a digest of
the response, which also changes with the name of the author. The ETag of an image is its ID. Flask
makes the ETags of static files. Every other ETag is a digest of the response. `If-Match` compares
the digest of a user or of the metadata of an image, because these contain nothing of other rows.
"""

import hashlib
import re
from typing import Any

from flask import Response, request
from werkzeug.exceptions import PreconditionFailed

from posting.web.problems import Coded
from posting.web.response_body import to_json

READS = frozenset({"GET", "HEAD"})
CONTENT_HEADERS = ("Content-Type", "Content-Length")
# Proxies that compress a response change its ETag: W/"1-ab", "1-ab:gzip", "1-ab-gzip".
ETAG = re.compile(r'(?:W/)?"([^"]*?)(?:[:;-](?:gzip|br|zstd|deflate))?"')
IMMUTABLE = "public, max-age=31536000, immutable"  # for a year


class ChangedSince(Coded, PreconditionFailed):
    error_code = "stale_version"
    description = "It has been changed since; read it again."


def immutable_headers(etag: str, *, is_public: bool) -> dict[str, str]:
    """Return the headers of a response that never changes."""
    cache = IMMUTABLE if is_public else IMMUTABLE.replace("public", "private")
    return {"ETag": f'"{etag}"', "Cache-Control": cache}


def etag_header(version: int) -> dict[str, str]:
    """Return the ETag header of a version, to which `add_etag` appends the digest."""
    return {"ETag": f'"{version}"'}


def etag_of(body: Any) -> str:
    """Return the ETag of a response that has this body and no version."""
    return _digest(to_json(body))


def etag_matches(header: str, etag: str) -> bool:
    """Return whether an `If-None-Match` or `If-Match` header matches `etag`."""
    return header.strip() == "*" or f'"{etag}"' in header or etag in ETAG.findall(header)


def if_none_match(etag: str) -> bool:
    """Return whether the request's `If-None-Match` matches `etag`."""
    return etag_matches(request.headers.get("If-None-Match", ""), etag)


def require_etag(header: str | None, *etags: str) -> None:
    """Raise 412 if an `If-Match` header matches none of `etags`. Lock the row before this."""
    if header is not None and not any(etag_matches(header, etag) for etag in etags):
        raise ChangedSince


def require_version(header: str | None, version: int) -> None:
    """Raise 412 if an `If-Match` header names another version. Lock the row before this."""
    if header is None or header.strip() == "*":
        return
    versions = {etag.partition("-")[0] for etag in ETAG.findall(header)}
    if str(version) not in versions:
        raise ChangedSince


def add_etag(response: Response) -> None:
    """Add the digest of the response to its ETag, or make the ETag of a GET or PATCH from it."""
    if response.status_code not in {200, 201} or response.is_streamed:
        return
    version = response.headers.get("ETag", "").strip('"')
    if not (version or request.method in READS or request.method == "PATCH"):
        return
    if "immutable" not in response.headers.get("Cache-Control", ""):
        digest = _digest(response.get_data() + response.headers.get("Link", "").encode())
        response.headers["ETag"] = f'"{version}-{digest}"' if version else f'"{digest}"'


def make_conditional(response: Response) -> Response:
    """Turn a 200 into a 304 if the client has the same response already."""
    if "HTTP_IF_NONE_MATCH" not in request.environ:
        return response
    is_read = request.method in READS and response.status_code == 200
    if is_read and not response.is_streamed and if_none_match(response.headers["ETag"].strip('"')):
        response.status_code = 304
        response.set_data(b"")
        for name in CONTENT_HEADERS:
            response.headers.pop(name, None)
    return response


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
