"""Static files, whose URLs change with their content, so that browsers may cache them forever."""

import hashlib
from pathlib import Path

from flask import Response, request, send_from_directory

from posting.web.etags import IMMUTABLE

FOLDER = Path(__file__).parent.parent / "static"
FINGERPRINTS = {
    file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:12] for file in FOLDER.iterdir()
}


def static_url(filename: str) -> str:
    """Return the URL of a static file."""
    return f"{request.script_root}/static/{filename}?v={FINGERPRINTS[filename]}"


def send_static_file(filename: str) -> Response:
    """Return a static file, which never changes if the URL names its content.

    Raise 404 if there is none.
    """
    response = send_from_directory(FOLDER, filename)
    if filename in FINGERPRINTS and request.args.get("v") == FINGERPRINTS[filename]:
        response.headers["Cache-Control"] = IMMUTABLE
    return response
