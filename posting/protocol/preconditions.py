"""Conditional requests (RFC 9110, section 13): entity tags, If-None-Match and If-Match."""

import hashlib
import re

from flask import Response, request
from marshmallow import Schema, fields
from werkzeug.exceptions import PreconditionFailed

# What proxies make of a tag when they compress its body: W/"1-ab", "1-ab:gzip", "1-ab-gzip".
_TAG = re.compile(r'(?:W/)?"([^"]*?)(?:[:;-](?:gzip|br|zstd|deflate))?"')


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


def client_has(tag: str) -> bool:
    """Tell whether the request names this tag as one that need not be sent again."""
    header = request.headers.get("If-None-Match", "").strip()
    return header == "*" or f'"{tag}"' in header or tag in _TAG.findall(header)


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
        raise PreconditionFailed("It has been changed since; read it again.")


def finish(response: Response) -> None:
    """Give an answer its ETag, and answer 304 where the client has the same already."""
    tag = response.headers.get("ETag", "").strip('"')
    safe = request.method in {"GET", "HEAD"}
    if response.status_code not in {200, 201} or not (safe or tag) or response.is_streamed:
        return
    if "immutable" not in response.headers.get("Cache-Control", ""):
        shown = response.get_data() + response.headers.get("Link", "").encode()
        digest = hashlib.blake2b(shown, digest_size=8).hexdigest()
        tag = f"{tag}-{digest}" if tag else digest
        response.headers["ETag"] = f'"{tag}"'
    if safe and client_has(tag):
        response.status_code = 304
        response.set_data(b"")
        for name in ("Content-Type", "Content-Length"):
            response.headers.pop(name, None)
