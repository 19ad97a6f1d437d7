"""Conditional requests (RFC 9110, section 13): entity tags, If-None-Match and If-Match."""

import hashlib
import re

from flask import Flask, Response, request
from marshmallow import Schema, fields
from werkzeug.exceptions import PreconditionFailed

OF_A_BODY = ("Content-Type", "Content-Length")
# What proxies make of a tag when they compress its body: W/"1-ab", "1-ab:gzip", "1-ab-gzip".
_TAG = re.compile(r'(?:W/)?"([^"]*?)(?:[:;-](?:gzip|br|zstd|deflate))?"')


class ChangedSince(PreconditionFailed):
    description = "It has been changed since; read it again."


class IfMatch(Schema):
    """The header that guards an edit against overwriting another's."""

    if_match = fields.String(
        data_key="If-Match",
        metadata={
            "description": "The ETag that was read; if it is stale, 412 and nothing changes.",
            "examples": ['"1-5f2c9d7a41e0b388"'],
        },
    )


def immutable(tag: str) -> dict[str, str]:
    """Return the headers of what never changes, which `finish` leaves as they are."""
    return {"ETag": f'"{tag}"', "Cache-Control": "public, max-age=31536000, immutable"}


def names(header: str, tag: str) -> bool:
    """Tell whether an If-None-Match names this tag."""
    return header.strip() == "*" or f'"{tag}"' in header or tag in _TAG.findall(header)


def client_has(tag: str) -> bool:
    """Tell whether the request names this tag as one that need not be sent again."""
    return names(request.headers.get("If-None-Match", ""), tag)


def versioned(version: int) -> dict[str, str]:
    """Return the ETag header of a record, to which `finish` adds a digest of its body.

    The version guards edits; the digest keeps 304 true when only the surroundings changed, such as
    a comment count or an author's name.
    """
    return {"ETag": f'"{version}"'}


def require_match(condition: dict[str, str], version: int) -> None:
    """Raise 412 if an If-Match was sent and names another version than `version`."""
    header = condition.get("if_match", "*").strip()
    versions = {tag.partition("-")[0] for tag in _TAG.findall(header)}
    if header != "*" and str(version) not in versions:
        raise ChangedSince


def tag(response: Response) -> None:
    """Give an answer its ETag."""
    if response.status_code not in {200, 201} or response.is_streamed:
        return
    given = response.headers.get("ETag", "").strip('"')
    if not (given or request.method in {"GET", "HEAD"}):
        return
    if "immutable" not in response.headers.get("Cache-Control", ""):
        shown = response.get_data() + response.headers.get("Link", "").encode()
        digest = hashlib.sha256(shown).hexdigest()[:16]
        response.headers["ETag"] = f'"{given}-{digest}"' if given else f'"{digest}"'


def shorten(response: Response) -> Response:
    """Answer 304 where the client has the same already."""
    if "HTTP_IF_NONE_MATCH" not in request.environ:
        return response
    safe = request.method in {"GET", "HEAD"} and response.status_code == 200
    if safe and not response.is_streamed and client_has(response.headers["ETag"].strip('"')):
        response.status_code = 304
        response.set_data(b"")
        for name in OF_A_BODY:
            response.headers.pop(name, None)
    return response


def init_app(app: Flask) -> None:
    app.after_request(shorten)
