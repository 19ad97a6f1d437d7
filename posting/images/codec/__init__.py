"""Image processing: decode untrusted uploads and encode them again without metadata.

The server never decodes an image itself. It runs `child.py` in a child process with limited memory
and time, so that no image can take a worker down.
"""

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore, Lock, Timer
from typing import Any, BinaryIO, cast

# The child process gets this process's packages, but not its environment or working directory.
# It gets the code of the running version too, because an upgrade may have replaced the file.
COMMAND = (sys.executable, "-s", "-P", "-c", Path(__file__).with_name("child.py").read_text())
MAX_SECONDS = 30
MAX_HEADER_BYTES = 1000  # the line of JSON before the renditions and the image
CRASH_SIGNALS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}
MEDIA_TYPES = {"image/png", "image/jpeg", "image/webp", "image/gif"}
THUMBNAIL_SIDE = 320  # pixels
MAX_THUMBNAIL_BYTES = 20_000
# The longest sides of an image in the sizes for pages, and their maximum numbers of bytes.
SIZES = {640: 200_000, 1600: 800_000}
LIMITS = {THUMBNAIL_SIDE: MAX_THUMBNAIL_BYTES, **SIZES}
# The sides of the two copies of a face, and their maximum numbers of bytes.
FACE_LIMITS = {256: 30_000, 64: 5_000}
# The widths of the two copies of a cover, and their maximum numbers of bytes.
COVER_LIMITS = {1280: 300_000, 768: 120_000}

# Decoding can take 500 MB and a core for seconds, so each worker decodes one image at a time. A
# waiting request holds a thread, and half of the threads must stay free for other requests.
MAX_UPLOADS = 4  # including the one that is being decoded
MAX_WAIT_SECONDS = 20
_decoder = BoundedSemaphore(1)
_queue = BoundedSemaphore(MAX_UPLOADS)
_members: set[str] = set()  # who has an image in the queue
_members_lock = Lock()

_logger = logging.getLogger("posting.images.codec")


class ImageError(Exception):
    """The file is not an acceptable image; the message says why."""


class BusyError(Exception):
    """Too many images are waiting, or there is too little memory or time for this one."""


class OwnImageError(Exception):
    """Another image of this member is in the queue."""


@dataclass(frozen=True)
class Rendition:
    """A small copy of an image, as WebP."""

    width: int
    height: int
    data: bytes


@dataclass(frozen=True)
class Renditions:
    """The small copies of an image: its thumbnail, and its sizes for pages by their sides."""

    thumbnail: Rendition
    sizes: Mapping[int, Rendition]


@dataclass(frozen=True)
class ReencodedImage:
    """An image in its original format, without metadata. A still image is upright and in sRGB."""

    media_type: str
    width: int
    height: int
    data: bytes
    renditions: Renditions


@contextmanager
def place_of(member: str) -> Iterator[None]:
    """Take the only place of a member in the queue of this worker. Raise OwnImageError.

    So one member leaves the other places to others, however many images they send.
    """
    with _members_lock:
        if member in _members:
            raise OwnImageError
        _members.add(member)
    try:
        yield
    finally:
        with _members_lock:
            _members.remove(member)


def reencode(data: bytes, *, max_bytes: int) -> ReencodedImage:
    """Decode an image and encode it again in at most `max_bytes`.

    Call this outside a transaction: 25 megapixels take seconds.

    Raise ImageError or BusyError.
    """
    properties, renditions, encoded = _process(data, max_bytes, LIMITS)
    thumbnail = renditions.pop(THUMBNAIL_SIDE)
    return ReencodedImage(**properties, data=encoded, renditions=Renditions(thumbnail, renditions))


def make_renditions(data: bytes) -> Renditions:
    """Decode an image that `reencode` has encoded, and make its renditions.

    Raise ImageError or BusyError.
    """
    _, renditions, _ = _process(data, 0, LIMITS)
    return Renditions(renditions.pop(THUMBNAIL_SIDE), renditions)


def make_faces(data: bytes) -> dict[int, bytes]:
    """Decode an image, and return the square in its middle as WebPs, by their sides.

    Raise ImageError or BusyError.
    """
    return _cut(data, FACE_LIMITS)


def make_covers(data: bytes) -> dict[int, bytes]:
    """Decode an image, and return the cover in its middle as WebPs, by their widths.

    Raise ImageError or BusyError.
    """
    return _cut(data, COVER_LIMITS)


def _cut(data: bytes, limits: Mapping[int, int]) -> dict[int, bytes]:
    _, renditions, _ = _process(data, 0, limits)
    return {side: renditions[side].data for side in limits}


# The properties of an image, its renditions by their sides, and its new encoding.
_Processed = tuple[dict[str, Any], dict[int, Rendition], bytes]


def _process(data: bytes, max_bytes: int, limits: Mapping[int, int]) -> _Processed:
    """Return an image and its renditions. With 0 bytes, it is not encoded and has no data."""
    with _acquired(_queue, timeout=0), _acquired(_decoder, timeout=MAX_WAIT_SECONDS):
        status, output, errors = _run_codec(data, max_bytes, limits)
    if status == -signal.SIGXCPU:
        raise ImageError("Cannot be decoded: it takes too long.")
    if -status in CRASH_SIGNALS:
        _logger.warning("The image decoder crashed with signal %d.", -status)
        raise ImageError("Cannot be decoded: it is damaged.")
    if status != 0:  # out of time, out of memory, or it could not start
        _logger.error("The image decoder failed with status %d: %s", status, errors)
        raise BusyError
    try:
        return _parse(output, limits)
    except (KeyError, TypeError, ValueError) as error:
        _logger.error("The output of the image decoder is not valid: %r", error)
        raise BusyError from error


def _parse(output: bytes, limits: Mapping[int, int]) -> _Processed:
    """Return what the codec has written. Raise ImageError, or an error if it is not valid."""
    start = output.find(b"\n") + 1
    properties = json.loads(output[:start])
    if "error" in properties:
        raise ImageError(properties["error"])
    found = {}
    for described in properties.pop("renditions"):
        side, width, height, size = (
            described[name] for name in ("side", "width", "height", "bytes")
        )
        if (
            any(type(number) is not int for number in (side, width, height, size))
            or side in found
            or not 1 <= min(width, height) <= max(width, height) <= side
            or not 1 <= size <= limits[side]
        ):
            raise ValueError("the header does not describe a rendition")
        found[side] = Rendition(width, height, output[start : start + size])
        start += size
    media_type, width, height = (properties[name] for name in ("media_type", "width", "height"))
    if (
        len(properties) > 3
        or media_type not in MEDIA_TYPES
        or any(type(number) is not int or number < 1 for number in (width, height))
        or start > len(output)
        or not found.keys() >= limits.keys() - SIZES.keys()
    ):
        raise ValueError("the header does not describe an image")
    return properties, found, output[start:]


@contextmanager
def _acquired(semaphore: BoundedSemaphore, *, timeout: float) -> Iterator[None]:
    if not semaphore.acquire(timeout=timeout):
        raise BusyError
    try:
        yield
    finally:
        semaphore.release()


def _run_codec(data: bytes, max_bytes: int, limits: Mapping[int, int]) -> tuple[int, bytes, str]:
    """Run the codec; return its exit status, its output up to the size limit, and its stderr."""
    max_output = MAX_HEADER_BYTES + sum(limits.values()) + max_bytes
    try:
        child = subprocess.Popen(  # noqa: S603 - the command is a constant
            [*COMMAND, str(max_bytes), json.dumps(limits)],
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # so that Ctrl-C in the server's terminal does not reach it
        )
    except OSError as error:
        _logger.error("The image decoder did not start: %s", error)
        raise BusyError from error
    pipes = child.stdin, child.stdout, child.stderr
    stdin, stdout, stderr = (cast(BinaryIO, pipe) for pipe in pipes)
    deadline = Timer(MAX_SECONDS, child.kill)
    with child:
        try:
            deadline.start()
            with suppress(BrokenPipeError), stdin:  # it has exited, and its status says why
                stdin.write(data)
            output = stdout.read(max_output)
            if len(output) < max_output:
                child.wait()
        except RuntimeError as error:  # no thread could be started for the deadline
            raise BusyError from error
        finally:
            child.kill()
            deadline.cancel()
        errors = stderr.read(MAX_HEADER_BYTES).decode(errors="replace")
    return child.returncode, output, errors
