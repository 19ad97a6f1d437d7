"""Make images safe to serve: recognized by content, bounded, and encoded again without metadata.

This process never decodes an image. A child process does (`codec.py`), whose memory and time are
limited: whatever it does, a worker goes on.
"""

import json
import logging
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore, Timer
from typing import BinaryIO, cast

# With the packages of this process, and nothing else of its environment or working directory.
COMMAND = (sys.executable, "-s", "-P", str(Path(__file__).with_name("codec.py")))
MAX_SECONDS = 30
MAX_HEADER = 1000  # bytes of the line of JSON before the image
CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}
MEDIA_TYPES = {"image/png", "image/jpeg", "image/webp", "image/gif"}

# One image is decoded at a time, since it may take some 500 MB and a core for seconds. Requests
# that wait occupy a thread each, and half of the threads must remain for others.
MAX_WAITING = 4  # including the one that is being decoded
MAX_WAIT_SECONDS = 20
_turn = BoundedSemaphore(1)
_queue = BoundedSemaphore(MAX_WAITING)

_logger = logging.getLogger("posting.domain.imaging")


class ImageError(ValueError):
    """A file that is not an acceptable image; the message says why."""


class BusyError(Exception):
    """There are too many images to decode, or too little memory or time for one."""


@dataclass(frozen=True)
class ReencodedImage:
    """An image encoded again in its format, without metadata; a still one upright and in sRGB."""

    media_type: str
    width: int
    height: int
    data: bytes


def reencode(data: bytes, *, max_bytes: int) -> ReencodedImage:
    """Decode an image in a child process and encode it again in at most `max_bytes`.

    This takes seconds for 25 megapixels, so call it outside a transaction.

    Errors: ImageError, BusyError.
    """
    if not _queue.acquire(blocking=False):
        raise BusyError
    try:
        if not _turn.acquire(timeout=MAX_WAIT_SECONDS):
            raise BusyError
        try:
            status, output, errors = _run_codec(data, max_bytes)
        finally:
            _turn.release()
    finally:
        _queue.release()
    if status == -signal.SIGXCPU:
        raise ImageError("Cannot be decoded: it takes too long.")
    if -status in CRASHES:
        _logger.warning("The image decoder crashed by signal %d.", -status)
        raise ImageError("Cannot be decoded: it is damaged.")
    if status != 0:  # by the deadline, by the kernel when memory runs out, or it did not start
        _logger.error("The image decoder ended with status %d: %s", status, errors)
        raise BusyError
    return _read_output(output)


def _run_codec(data: bytes, max_bytes: int) -> tuple[int, bytes, str]:
    """Run the decoder; return its status, its output, cut at the largest valid size, and errors."""
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        child = subprocess.Popen(  # noqa: S603 - the command is a constant
            [*COMMAND, str(max_bytes)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C at the server is not for it
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
            with suppress(BrokenPipeError), stdin:  # it has ended, and its status says why
                stdin.write(data)
            output = stdout.read(MAX_HEADER + max_bytes)
            if len(output) < MAX_HEADER + max_bytes:
                child.wait()
        except RuntimeError as error:  # the process has no thread left for the deadline
            raise BusyError from error
        finally:
            child.kill()
            deadline.cancel()
        errors = stderr.read(MAX_HEADER).decode(errors="replace")
    return child.returncode, output, errors


def _read_output(output: bytes) -> ReencodedImage:
    header, _, data = output.partition(b"\n")
    try:
        described = json.loads(header)
        if "error" in described:
            raise ImageError(described["error"])
        image = ReencodedImage(data=data, **described)
        if image.media_type not in MEDIA_TYPES or min(image.width, image.height) < 1:
            raise ValueError("it describes no image")
    except ImageError:
        raise
    except (TypeError, ValueError) as error:
        _logger.error("The output of the image decoder is not valid: %s", error)
        raise BusyError from error
    return image
