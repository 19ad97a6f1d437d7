"""Static files. Their URLs have a digest of all files, so that browsers may cache them forever.

One digest in the path serves for all files, since modules import each other by relative URLs.
"""

import hashlib
import re
from functools import cache
from pathlib import Path

from flask import Response, request, send_from_directory

from posting.web.etags import IMMUTABLE

FOLDER = Path(__file__).parent.parent / "static"
DIGEST = hashlib.sha256(
    b"".join(file.name.encode() + file.read_bytes() for file in sorted(FOLDER.iterdir()))
).hexdigest()[:12]
_IMPORT = re.compile(r'^(?:import|} from|import .* from) "\./([\w-]+\.js)";$', re.MULTILINE)


def static_url(filename: str) -> str:
    """Return the URL of a static file."""
    return f"{request.script_root}/static/{DIGEST}/{filename}"


def script_urls(module: str) -> list[str]:
    """Return the URLs of a module and of all that it imports, so that none waits for another."""
    return [static_url(name) for name in _imports(module)]


def send_static_file(filename: str) -> Response:
    """Return a static file, which never changes if its path begins with the digest.

    With another digest, as in a page of another version, this is the present file. Raise 404 if
    there is none.
    """
    digest, _, name = filename.rpartition("/")
    response = send_from_directory(FOLDER, name)
    if digest == DIGEST:
        response.headers["Cache-Control"] = IMMUTABLE
    return response


@cache
def _imports(module: str) -> tuple[str, ...]:
    """Return a module and all that it imports, directly or not."""
    found = [module]
    for name in found:
        names = _IMPORT.findall((FOLDER / name).read_text("utf-8"))
        found += [imported for imported in names if imported not in found]
    return tuple(found)
