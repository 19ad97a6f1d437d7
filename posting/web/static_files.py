"""Static files. Their URLs have a digest of all files, so that browsers may cache them forever.

One digest in the path serves for all files, since modules import each other by relative URLs.

The files are in memory, because an upgrade replaces those of a version that still serves. While
somebody develops, they are read again for each request.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from io import BytesIO
from pathlib import Path

from flask import Response, current_app, request, send_file
from werkzeug.exceptions import NotFound

from posting.web.etags import IMMUTABLE

FOLDER = Path(__file__).parent.parent / "static"
_IMPORT = re.compile(r'^(?:import|} from|import .* from) "\./([\w-]+\.js)";$', re.MULTILINE)


@dataclass(frozen=True)
class StaticFile:
    """A file as it was when it was read."""

    name: str
    data: bytes
    modified_at: float

    @cached_property
    def etag(self) -> str:
        return hashlib.sha256(self.data).hexdigest()[:16]


def read_files(folder: Path) -> dict[str, StaticFile]:
    """Return the files of a folder by their names."""
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    return {
        path.name: StaticFile(path.name, path.read_bytes(), path.stat().st_mtime) for path in paths
    }


FILES = read_files(FOLDER)
DIGEST = hashlib.sha256(
    b"".join(file.name.encode() + file.data for file in FILES.values())
).hexdigest()[:12]


def static_url(filename: str) -> str:
    """Return the URL of a static file."""
    return f"{request.script_root}/static/{DIGEST}/{filename}"


def script_urls(module: str) -> list[str]:
    """Return the URLs of a module and of all that it imports, so that none waits for another."""
    return [static_url(name) for name in _imports(module)]


def send_static_file(filename: str) -> Response:
    """Return a static file, which never changes if its path begins with the digest.

    With another digest, as in a page of another version, this is the file of the running version.
    Raise 404 if there is none.
    """
    digest, _, name = filename.rpartition("/")
    if current_app.debug:
        return send_one_of(read_files(FOLDER), name)
    response = send_one_of(FILES, name)
    if digest == DIGEST:
        response.headers["Cache-Control"] = IMMUTABLE
    return response


def send_one_of(files: Mapping[str, StaticFile], name: str) -> Response:
    """Return the file with this name. Raise 404 if there is none."""
    file = files.get(name)
    if file is None:
        raise NotFound
    return send_file(
        BytesIO(file.data),
        download_name=name,
        etag=file.etag,
        last_modified=file.modified_at,
        conditional=True,
    )


@cache
def _imports(module: str) -> tuple[str, ...]:
    """Return a module and all that it imports, directly or not."""
    found = [module]
    for name in found:
        names = _IMPORT.findall(FILES[name].data.decode())
        found += [imported for imported in names if imported not in found]
    return tuple(found)
