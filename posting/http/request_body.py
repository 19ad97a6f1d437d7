"""Bodies, read strictly.

JSON (RFC 8259) is UTF-8 without duplicate names and with finite numbers; its depth and the number
of names in an object are bounded. Python's parser takes more than that, and raises RecursionError
for deep nesting. Forms (RFC 7578) are UTF-8 too: werkzeug's own reader would replace what is not.
"""

import json
import math
from collections.abc import Iterator, Set
from itertools import chain
from typing import Any, NoReturn

from flask import current_app, request
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import (
    BadRequest,
    RequestEntityTooLarge,
    UnsupportedMediaType,
)
from werkzeug.sansio.multipart import (
    Data,
    Epilogue,
    Field,
    File,
    MultipartDecoder,
    NeedData,
    State,
)

from posting.config import max_form_bytes

DEEPEST = 100
MAX_NAMES = 50  # in one JSON object: more than any schema has
JSON_TYPES = {"application/json"}
PATCH_TYPES = JSON_TYPES | {"application/merge-patch+json"}  # RFC 7396
FORM_TYPE = "multipart/form-data"
MOST_PARTS = 20
LONGEST_BOUNDARY = 100  # RFC 2046, section 5.1.1, says 70, but clients of tests may draw 72
LONGEST_NAME = 100
MAX_PART_HEADER = 8192  # bytes; the decoder would search a longer one again and again
CHUNK = 2**16


def read_json() -> Any:
    """Return the request's JSON body.

    Errors: 413 too large, 415 another media type, 400 not JSON.
    """
    types = PATCH_TYPES if request.method == "PATCH" else JSON_TYPES
    return parse(b"".join(_chunks(current_app.config["MAX_JSON_BYTES"], types)))


def read_form() -> MultiDict[str, str | bytes]:
    """Return the parts of the request's form: texts, and files as bytes.

    Errors: 413 too large as a whole or in one file, 415 another media type, 400 not a form.
    """
    chunks = _chunks(max_form_bytes(current_app.config), {FORM_TYPE})
    boundary = request.mimetype_params.get("boundary", "")
    try:
        parts = MultiDict(_parts(chunks, boundary.encode()))
    except ValueError as error:
        for _ in chunks:  # a body that is too large is 413 before it is 400
            pass
        is_text = not isinstance(error, UnicodeDecodeError)
        detail = f"The body is not a form: {error}." if is_text else "The form is not UTF-8."
        raise BadRequest(detail) from None
    most = current_app.config["MAX_IMAGE_BYTES"]
    if any(isinstance(part, bytes) and len(part) > most for part in parts.values()):
        raise RequestEntityTooLarge(f"A file may have at most {most:,} bytes.")
    return parts


def _parts(chunks: Iterator[bytes], boundary: bytes) -> Iterator[tuple[str, str | bytes]]:
    """Yield the parts of a form. They are decoded as they arrive, so that each is in memory once.

    Errors: ValueError, and those of the chunks.
    """
    received = chain([next(chunks)], chunks, [None])  # raises 413, 415 or 400 first
    if not 1 <= len(boundary) <= LONGEST_BOUNDARY:
        raise ValueError(
            f"its Content-Type names no boundary of 1 to {LONGEST_BOUNDARY} characters"
        )
    decoder, count = MultipartDecoder(boundary), 0
    part: Field | File | None = None
    content: list[bytes] = []
    for chunk in received:
        decoder.receive_data(chunk)
        if chunk is None and decoder.state is not State.EPILOGUE:
            raise ValueError("its last boundary is missing")
        while not isinstance(event := decoder.next_event(), NeedData | Epilogue):
            if isinstance(event, Field | File):
                if not event.name or len(event.name) > LONGEST_NAME:
                    raise ValueError(f"a part has no name of 1 to {LONGEST_NAME} characters")
                part, content, count = event, [], count + 1
                if count > MOST_PARTS:
                    raise ValueError(f"it has more than {MOST_PARTS} parts")
            elif isinstance(event, Data) and part:
                content.append(event.data)
                if not event.more_data:
                    value = b"".join(content)
                    content.clear()
                    yield part.name, value if isinstance(part, File) else value.decode()
        if decoder.state is State.PART and len(decoder.buffer) > MAX_PART_HEADER:
            raise ValueError(f"a part has more than {MAX_PART_HEADER:,} bytes of headers")


def _chunks(most: int, types: Set[str]) -> Iterator[bytes]:
    """Yield the body, of at most `most` bytes. Errors: 413, 415, 400 if it is empty or cut off."""
    expected = " or ".join(sorted(types))
    is_expected = request.mimetype in types
    request.max_content_length = most + 1  # where the stream of a body without a length ends
    size = 0
    try:
        while chunk := request.stream.read(CHUNK):
            size += len(chunk)
            if size > most:
                raise RequestEntityTooLarge
            if is_expected:
                yield chunk
    except RequestEntityTooLarge:
        raise too_large(most) from None
    except Exception as error:  # the server's own, for malformed chunks or a broken connection
        raise BadRequest("The body did not arrive whole.") from error
    if not size:
        raise BadRequest(f"The body is empty; it must be {expected}.")
    if not is_expected:
        raise UnsupportedMediaType(f"The body must be sent as {expected}.")


def too_large(most: int) -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"The body may have at most {most:,} bytes.")


def parse(data: bytes) -> Any:
    """Parse one JSON document; raise 400 with the reason if it is none."""
    try:
        value = _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadRequest("The body is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise BadRequest(f"The body is not JSON: {error}.") from None
    except ValueError as error:
        raise BadRequest(f"The body is not acceptable JSON: {error}.") from None
    except RecursionError:
        raise BadRequest(_TOO_DEEP) from None
    if data.count(b"[") + data.count(b"{") > DEEPEST and _depth(value) > DEEPEST:
        raise BadRequest(_TOO_DEEP)
    return value


_TOO_DEEP = f"The body is nested more than {DEEPEST} deep."


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [
            child for item in level for child in (item.values() if isinstance(item, dict) else item)
        ]
    return depth


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_NAMES:
        raise ValueError(f"an object has more than {MAX_NAMES} names")
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ValueError("a name appears twice in one object")
    return names


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_finite, parse_constant=_constant
)
