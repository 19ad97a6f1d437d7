"""JSON bodies, read strictly: UTF-8, no duplicate names, finite numbers, bounded depth (RFC 8259).

Python's parser takes more than JSON is, and deep nesting costs it a RecursionError.
"""

import json
import math
from typing import Any, NoReturn

from flask import current_app, request
from werkzeug.exceptions import (
    BadRequest,
    HTTPException,
    RequestEntityTooLarge,
    UnsupportedMediaType,
)

DEEPEST = 100
JSON_TYPES = {"application/json"}
PATCH_TYPES = JSON_TYPES | {"application/merge-patch+json"}  # RFC 7396


def read_json() -> Any:
    """Return the request's JSON body.

    Errors: 413 too large, 415 another media type, 400 not JSON.
    """
    data = _receive(current_app.config["MAX_JSON_BYTES"])
    types = PATCH_TYPES if request.method == "PATCH" else JSON_TYPES
    if data and request.mimetype not in types:
        raise UnsupportedMediaType(f"The body must be sent as {' or '.join(sorted(types))}.")
    if not data:
        raise BadRequest("The body is empty; it must be a JSON object.")
    return parse(data)


def _receive(most: int) -> bytes:
    request.max_content_length = most + 1  # where a body that tells no length is cut off
    try:
        data = request.get_data(cache=False)
    except HTTPException:
        raise
    except Exception as error:  # the server's own, for chunks that are none or a broken connection
        raise BadRequest("The body did not arrive whole.") from error
    if len(data) > most:
        raise RequestEntityTooLarge
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
