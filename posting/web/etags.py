"""JSON of responses, and conditional requests (RFC 9110, section 13): ETags and preconditions.

The ETag of a post or comment has two parts: its version, which `If-Match` compares, and a digest of
the response, which also changes with the name of the author. The ETag of an image is its ID. Flask
makes the ETags of static files. Every other ETag is a digest of the response, all of which
`If-Match` compares.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from flask import Response, request
from werkzeug.exceptions import PreconditionFailed
from werkzeug.http import parse_date

from posting.web.errors import Coded

READS = frozenset({"GET", "HEAD"})
DATES = ("HTTP_IF_MODIFIED_SINCE", "HTTP_IF_UNMODIFIED_SINCE", "HTTP_IF_RANGE")
CONTENT_HEADERS = ("Content-Type", "Content-Length")
# Proxies that compress a response change its ETag: W/"1-ab", "1-ab:gzip", "1-ab-gzip".
ETAG = re.compile(r'(?:W/)?"([^"]*?)(?:[:;-](?:gzip|br|zstd|deflate))?"')
IMMUTABLE = "public, max-age=31536000, immutable"  # for a year

# orjson would encode dataclasses, such as the current user, with all of their fields.
JSON_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


class ChangedSince(Coded, PreconditionFailed):
    error_code = "stale_version"
    description = "It has been changed since; read it again."


class AlreadyCurrent(Coded, PreconditionFailed):
    error_code = "already_current"
    description = "It is there already, as If-None-Match excludes."


class UnsupportedPrecondition(Coded, PreconditionFailed):
    error_code = "unsupported_precondition"
    description = "This request takes no precondition; leave out If-Match and If-None-Match."


def to_json(body: Any) -> bytes:
    """Return the body of a response. Raise TypeError for values that JSON does not have."""
    # A copy, unlike with OPT_APPEND_NEWLINE: orjson's buffer is larger than its content, and with
    # cached responses a worker would take 14 MiB more.
    return orjson.dumps(body, option=JSON_OPTIONS) + b"\n"


def immutable_headers(etag: str, *, is_public: bool) -> dict[str, str]:
    """Return the headers of a response that never changes."""
    cache = IMMUTABLE if is_public else IMMUTABLE.replace("public", "private")
    return {"ETag": f'"{etag}"', "Cache-Control": cache}


def etag_header(body: Any, version: int | None = None) -> dict[str, str]:
    """Return the ETag header of what GET responds with this body, and of its version if it has one.

    A response without this header gets the ETag of its own body.
    """
    digest = etag_of(body)
    return {"ETag": f'"{digest}"' if version is None else f'"{version}-{digest}"'}


def etag_of(body: Any) -> str:
    """Return the ETag of a response that has this body and no version."""
    return _digest(to_json(body))


def etag_matches(header: str, etag: str) -> bool:
    """Return whether an `If-None-Match` or `If-Match` header matches `etag`."""
    return header.strip() == "*" or f'"{etag}"' in header or etag in ETAG.findall(header)


def if_none_match(etag: str) -> bool:
    """Return whether the request's `If-None-Match` matches `etag`."""
    return etag_matches(request.headers.get("If-None-Match", ""), etag)


@dataclass(frozen=True)
class Condition:
    """The preconditions of a write. A view checks them after it has locked the row.

    `unmodified_since` is None for an invalid date, and beside `If-Match`, as RFC 9110 says.
    """

    if_match: str | None = None
    if_none_match: str | None = None
    unmodified_since: datetime | None = None

    @classmethod
    def of_request(cls) -> "Condition":
        if_match = request.headers.get("If-Match")
        unmodified_since = request.if_unmodified_since if if_match is None else None
        return cls(if_match, request.headers.get("If-None-Match"), unmodified_since)

    def refuse(self) -> None:
        """Raise 412 if there is a precondition, at an endpoint that takes none.

        A date is not a precondition there, because nothing that is written has a time of its last
        edit.
        """
        if self.if_match is not None or self.if_none_match is not None:
            raise UnsupportedPrecondition

    def require(self, *etags: str, updated_at: datetime | None = None) -> None:
        """Raise 412 unless this holds for an object with these ETags, or for none without them."""
        self._require(lambda sent: any(etag_matches(sent, each) for each in etags), updated_at)

    def require_body(self, body: Any | None) -> None:
        """Raise 412 unless this holds for the body of the response to GET, or for no such body."""
        self.require(*([] if body is None else [etag_of(body)]))

    def require_version(self, version: int, updated_at: datetime | None = None) -> None:
        """Raise 412 unless this holds for an object with this version.

        Without `updated_at`, dates are not compared.
        """
        self._require(lambda sent: _has_version(sent, version), updated_at)

    def _require(self, matches: Callable[[str], bool], updated_at: datetime | None) -> None:
        if self.if_match is not None and not matches(self.if_match):
            raise ChangedSince
        if self.unmodified_since and updated_at:
            in_seconds = updated_at.replace(microsecond=0)  # as an HTTP date is
            if in_seconds > self.unmodified_since:
                raise ChangedSince
        if self.if_none_match is not None and matches(self.if_none_match):
            raise AlreadyCurrent


def _has_version(header: str, version: int) -> bool:
    versions = {etag.partition("-")[0] for etag in ETAG.findall(header)}
    return header.strip() == "*" or str(version) in versions


def drop_invalid_dates() -> None:
    """Ignore preconditions with dates that are too large for `datetime`, as RFC 9110 says.

    Werkzeug ignores other invalid dates itself.
    """
    for name in DATES:
        if sent := request.environ.get(name):
            try:
                parse_date(sent)
            except OverflowError:
                del request.environ[name]


def add_etag(response: Response) -> None:
    """Add the ETag to a response that has none: to GET, to PATCH, and to what was created.

    Not to PUT, whose response has more than the request (RFC 9110, section 9.3.4).
    """
    if response.is_streamed or "ETag" in response.headers:
        return
    is_read_or_edited = response.status_code == 200 and request.method in {*READS, "PATCH"}
    if is_read_or_edited or response.status_code == 201:
        digest = _digest(response.get_data() + response.headers.get("Link", "").encode())
        response.headers["ETag"] = f'"{digest}"'


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
