"""Bodies, read strictly.

JSON (RFC 8259) is UTF-8 without duplicate names, its numbers finite, its depth bounded: Python's
parser takes more than JSON is, and deep nesting costs it a RecursionError. Forms (RFC 7578) are
UTF-8 too: werkzeug's own reader would put other characters in place of what is not.
"""

import json
import math
from collections.abc import Iterator, Set
from typing import Any, NoReturn

from flask import current_app, request
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import (
    BadRequest,
    HTTPException,
    RequestEntityTooLarge,
    UnsupportedMediaType,
)
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder

DEEPEST = 100
JSON_TYPES = {"application/json"}
PATCH_TYPES = JSON_TYPES | {"application/merge-patch+json"}  # RFC 7396
FORM_TYPE = "multipart/form-data"
MOST_PARTS = 20
LONGEST_BOUNDARY = 100  # RFC 2046, section 5.1.1, says 70, but clients of tests may draw 72
LONGEST_NAME = 100


def read_json() -> Any:
    """Return the request's JSON body.

    Errors: 413 too large, 415 another media type, 400 not JSON.
    """
    types = PATCH_TYPES if request.method == "PATCH" else JSON_TYPES
    return parse(_receive(current_app.config["MAX_JSON_BYTES"], types))


def read_form() -> MultiDict[str, str | bytes]:
    """Return the parts of the request's form: texts, and files as bytes.

    Errors: 413 too large as a whole or in one file, 415 another media type, 400 not a form.
    """
    data = _receive(current_app.config["MAX_UPLOAD_BYTES"], {FORM_TYPE})
    boundary = request.mimetype_params.get("boundary", "")
    try:
        parts = MultiDict(_parts(data, boundary.encode()))
    except RequestEntityTooLarge:
        raise BadRequest(f"The form has more than {MOST_PARTS} parts.") from None
    except UnicodeDecodeError:
        raise BadRequest("The form is not UTF-8.") from None
    except ValueError as error:
        raise BadRequest(f"The body is not a form: {error}.") from None
    most = current_app.config["MAX_IMAGE_BYTES"]
    if any(isinstance(part, bytes) and len(part) > most for part in parts.values()):
        raise RequestEntityTooLarge(f"A file may have at most {most:,} bytes.")
    return parts


def _parts(data: bytes, boundary: bytes) -> Iterator[tuple[str, str | bytes]]:
    if not 1 <= len(boundary) <= LONGEST_BOUNDARY:
        raise ValueError(
            f"its Content-Type names no boundary of 1 to {LONGEST_BOUNDARY} characters"
        )
    decoder = MultipartDecoder(boundary, max_parts=MOST_PARTS)
    decoder.receive_data(data)
    decoder.receive_data(None)
    part: Field | File | None = None
    while not isinstance(event := decoder.next_event(), Epilogue):
        if isinstance(event, Field | File):
            part = event
        elif isinstance(event, Data) and part:
            if not part.name or len(part.name) > LONGEST_NAME:
                raise ValueError(f"a part has no name of 1 to {LONGEST_NAME} characters")
            yield part.name, event.data if isinstance(part, File) else event.data.decode()


def _receive(most: int, types: Set[str]) -> bytes:
    request.max_content_length = most + 1  # where a body that tells no length is cut off
    try:
        data = request.get_data(cache=False)
    except HTTPException:
        raise
    except Exception as error:  # the server's own, for chunks that are none or a broken connection
        raise BadRequest("The body did not arrive whole.") from error
    if len(data) > most:
        raise RequestEntityTooLarge
    expected = " or ".join(sorted(types))
    if data and request.mimetype not in types:
        raise UnsupportedMediaType(f"The body must be sent as {expected}.")
    if not data:
        raise BadRequest(f"The body is empty; it must be {expected}.")
    return data


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
