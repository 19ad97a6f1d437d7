"""Request bodies: strict JSON and forms, and what views leave of a body.

JSON (RFC 8259) is UTF-8 with unique names and finite numbers, and its depth and the number of names
per object are limited. Python's parser accepts more, and raises RecursionError for deep nesting.
Forms (RFC 7578) are UTF-8 too; werkzeug's own parser replaces invalid bytes.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Set
from itertools import chain
from typing import Any, NamedTuple, NoReturn

from flask import Flask, current_app, request
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder, NeedData, State

from posting.config import OTHER_PARTS, max_form_bytes

JSON_TYPES = {"application/json"}
PATCH_TYPES = JSON_TYPES | {"application/merge-patch+json"}  # RFC 7396
FORM_TYPE = "multipart/form-data"
MAX_DEPTH = 100
MAX_NAMES = 50  # in one JSON object: more than any schema has
MAX_PARTS = 20
MAX_PART_NAME = 100
MAX_PART_HEADER = 8192  # bytes; the decoder searches a longer one again for each chunk
MAX_BOUNDARY = 100  # RFC 2046, section 5.1.1, says 70, but some test clients generate 72
CHUNK = 2**16
TOO_DEEP = f"The body is nested more than {MAX_DEPTH} levels deep."


def read_json() -> Any:
    """Return the JSON body. Raise 413 if it is too large, 415 for another type, 400 if invalid."""
    types = PATCH_TYPES if request.method == "PATCH" else JSON_TYPES
    return parse_json(b"".join(_read(current_app.config["MAX_JSON_BYTES"], types)))


def parse_json(data: bytes) -> Any:
    """Parse a JSON document, or raise 400 with the reason."""
    try:
        value = _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadRequest("The body is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise BadRequest(f"The body is not JSON: {error}.") from None
    except ValueError as error:
        raise BadRequest(f"The body is not acceptable JSON: {error}.") from None
    except RecursionError:
        raise BadRequest(TOO_DEEP) from None
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise BadRequest(TOO_DEEP)
    return value


class Upload(NamedTuple):
    """A file in a form, with the name that the client gives it."""

    name: str
    data: bytes


def read_form(max_file_bytes: int) -> MultiDict[str, str | Upload]:
    """Return the parts of a form: text, and files.

    Raise 413 if the form or a file is too large, 415 for another type, 400 if it is invalid.
    """
    chunks = _read(max_file_bytes + OTHER_PARTS, {FORM_TYPE})
    boundary = request.mimetype_params.get("boundary", "")
    try:
        parts = MultiDict(_parts(chunks, boundary.encode()))
    except ValueError as error:
        for _ in chunks:  # if the body is also too large, this raises 413 instead
            pass
        if isinstance(error, UnicodeDecodeError):
            raise BadRequest("The form is not UTF-8.") from None
        raise BadRequest(f"The body is not a form: {error}.") from None
    sizes = [len(part.data) for part in parts.values() if isinstance(part, Upload)]
    if max(sizes, default=0) > max_file_bytes:
        raise RequestEntityTooLarge(f"A file may have at most {max_file_bytes:,} bytes.")
    return parts


def _parts(chunks: Iterator[bytes], boundary: bytes) -> Iterator[tuple[str, str | Upload]]:
    """Yield the parts of a form, decoded as they arrive, so that each is in memory once.

    Raise ValueError if the form is invalid.
    """
    received = chain([next(chunks)], chunks, [None])  # the first chunk may raise 413, 415 or 400
    if not 1 <= len(boundary) <= MAX_BOUNDARY:
        raise ValueError(f"its Content-Type names no boundary of 1 to {MAX_BOUNDARY} characters")
    decoder, count = MultipartDecoder(boundary), 0
    part: Field | File | None = None
    content: list[bytes] = []
    for chunk in received:
        decoder.receive_data(chunk)
        if chunk is None and decoder.state is not State.EPILOGUE:
            raise ValueError("its last boundary is missing")
        while not isinstance(event := decoder.next_event(), NeedData | Epilogue):
            if isinstance(event, Field | File):
                if not event.name or len(event.name) > MAX_PART_NAME:
                    raise ValueError(f"a part has no name of 1 to {MAX_PART_NAME} characters")
                part, content, count = event, [], count + 1
                if count > MAX_PARTS:
                    raise ValueError(f"it has more than {MAX_PARTS} parts")
            elif isinstance(event, Data) and part:
                content.append(event.data)
                if not event.more_data:
                    value = b"".join(content)
                    content.clear()
                    if isinstance(part, File):
                        yield part.name, Upload(part.filename, value)
                    else:
                        yield part.name, value.decode()
        if decoder.state is State.PART and len(decoder.buffer) > MAX_PART_HEADER:
            raise ValueError(f"a part has more than {MAX_PART_HEADER:,} bytes of headers")


def _read(max_bytes: int, types: Set[str]) -> Iterator[bytes]:
    """Yield the body in chunks. Raise 413, then 415, then 400 if it is empty or incomplete."""
    expected = " or ".join(sorted(types))
    is_expected = request.mimetype in types
    request.max_content_length = max_bytes + 1  # ends the stream of a body without a length
    size = 0
    try:
        while chunk := request.stream.read(CHUNK):
            size += len(chunk)
            if size > max_bytes:
                raise RequestEntityTooLarge
            if is_expected:
                yield chunk
    except RequestEntityTooLarge:
        raise too_large(max_bytes) from None
    except Exception as error:  # the server's own, for malformed chunks or a broken connection
        raise BadRequest("The body is incomplete.") from error
    if not size:
        raise BadRequest(f"The body is empty; it must be {expected}.")
    if not is_expected:
        raise UnsupportedMediaType(f"The body must be sent as {expected}.")


def too_large(max_bytes: int) -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"The body may have at most {max_bytes:,} bytes.")


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [
            child for item in level for child in (item.values() if isinstance(item, dict) else item)
        ]
    return depth


def _parse_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_NAMES:
        raise ValueError(f"an object has more than {MAX_NAMES} names")
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a name appears twice in one object")
    return value


def _parse_float(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_parse_object, parse_float=_parse_float, parse_constant=_refuse_constant
)


Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class BodyDrain:
    """WSGI middleware that reads the rest of a body before it starts the response.

    A server that responds before the body has arrived must close the connection, and a client or
    proxy that is still sending may then see a reset instead of the response (RFC 9112, section
    9.6). If the rest is over `max_bytes` or does not arrive, the connection is closed afterwards.
    """

    def __init__(self, app: Application, max_bytes: int) -> None:
        self._app, self._max_bytes = app, max_bytes

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        has_body = "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ
        if not has_body or not environ.get("wsgi.input_terminated"):
            return self._app(environ, start_response)

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            if not self._drain(environ):
                headers = [*headers, ("Connection", "close")]
                # gunicorn ignores that header; deploy/gunicorn.conf.py adds this function instead.
                if close := getattr(environ["wsgi.input"], "close_connection", None):
                    close()
            return start_response(status, headers, *exc_info)

        return self._app(environ, start)

    def _drain(self, environ: Environ) -> bool:
        """Read the rest of the body; return whether it ended."""
        left, body = self._max_bytes, environ["wsgi.input"]
        if int(environ.get("CONTENT_LENGTH") or 0) > left:
            return False
        if getattr(body, "failed", False):  # set by gunicorn after a timeout: do not wait again
            return False
        try:
            while left > 0 and (chunk := body.read(min(left, CHUNK))):
                left -= len(chunk)
        except Exception:  # the server's own, for malformed chunks or a broken connection
            return False
        return left > 0


def init_app(app: Flask) -> None:
    """Wrap the app and all other middleware; call this last."""
    max_bytes = max(app.config["MAX_JSON_BYTES"], max_form_bytes(app.config))
    drain = BodyDrain(app.wsgi_app, max_bytes)
    app.wsgi_app = drain  # type: ignore[method-assign]  # as Flask documents
