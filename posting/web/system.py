"""The service itself: health, documentation and static files.

The URLs of static files have a version: a digest of all files, so that browsers may cache them
forever, and the language of the page, on which only the module with the words depends. One version
in the path serves for all files, since modules import each other by relative URLs. The files are in
memory, because an upgrade replaces those of a version that still serves. While somebody develops,
they are read again for each request.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from flask import Response, current_app, redirect, render_template, request, send_file
from marshmallow import fields
from werkzeug.exceptions import NotFound, ServiceUnavailable

from posting import languages
from posting.db.migrations.revisions import is_current
from posting.languages import ENGLISH, LANGUAGES, current_language, words_of
from posting.web import openapi
from posting.web.endpoint import PUBLIC, SHARED, Blueprint, Reply
from posting.web.etags import IMMUTABLE, to_json
from posting.web.hosts import external_url
from posting.web.schemas import Output, described

system = Blueprint("system", __name__, description="Health and documentation")

# Registered instead of the pages if they are off.
root = Blueprint("root", __name__, description="Redirect")

FOLDER = Path(__file__).parent.parent / "static"
_IMPORT = re.compile(r'^(?:import|} from|import .* from) "\./([\w-]+\.js)";$', re.MULTILINE)


class StaticFile(NamedTuple):
    """A file as it was when it was read."""

    data: bytes
    modified_at: float
    etag: str


def read_files(folder: Path) -> dict[str, StaticFile]:
    """Return the files of a folder by their names."""
    files = {}
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        data = path.read_bytes()
        etag = hashlib.sha256(data).hexdigest()[:16]
        files[path.name] = StaticFile(data, path.stat().st_mtime, etag)
    return files


FILES = read_files(FOLDER)
WORDS = "catalog.js"
DIGEST = hashlib.sha256(
    b"".join(name.encode() + file.data for name, file in FILES.items())
    + b"".join(path.read_bytes() for path in sorted(languages.FOLDER.rglob("*.po")))
).hexdigest()[:12]


def static_url(filename: str) -> str:
    """Return the URL of a static file, in the language of the page."""
    return f"{request.script_root}/static/{DIGEST}-{current_language()}/{filename}"


def script_urls(module: str) -> list[str]:
    """Return the URLs of a module and of all that it imports, so that none waits for another."""
    return [static_url(name) for name in _imports(module)]


def send_static_file(filename: str) -> Response:
    """Return a static file, which never changes if its path begins with the version.

    With another version, as in a page of another release, this is the file of the running one.
    Raise 404 if there is none.
    """
    version, _, name = filename.rpartition("/")
    language = version.partition("-")[2]
    if language not in LANGUAGES:
        language = ENGLISH
    if name == WORDS and language != ENGLISH:
        response = send_one_of({WORDS: words_file(language)}, WORDS)
    elif current_app.debug:
        return send_one_of(read_files(FOLDER), name)
    else:
        response = send_one_of(FILES, name)
    if version == f"{DIGEST}-{language}":
        response.headers["Cache-Control"] = IMMUTABLE
    return response


@cache
def words_file(language: str) -> StaticFile:
    """Return the module with the words of a language: JSON that a module can import."""
    data = b"export default " + to_json(words_of(language)) + b";"
    return StaticFile(data, 0.0, hashlib.sha256(data).hexdigest()[:16])


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


# Of the files of Swagger UI, those that the page needs: 1.9 MB, for all workers.
SWAGGER_UI = {
    name: file
    for name, file in read_files(Path(str(files("flask_swagger_ui"))) / "dist").items()
    if name in {"favicon-32x32.png", "swagger-ui.css", "swagger-ui-bundle.js"}
}
# Swagger UI draws icons from data: URLs and images of responses from blob: URLs.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Health(Output):
    """The state of the service."""

    status = fields.String(metadata=described("ok"))


class OutdatedSchema(ServiceUnavailable):
    description = "The schema is not current. Run: flask db upgrade"

    def __init__(self) -> None:
        super().__init__(retry_after=60)


@system.get("/healthz", access=PUBLIC, returns=Health())
def check_health() -> Reply:
    """Check that the process is alive."""
    return {"status": "ok"}, {"Cache-Control": "no-store"}


@system.get("/readyz", access=PUBLIC, returns=Health(), errors=[OutdatedSchema])
def check_readiness() -> Reply:
    """Check that the database is available and its schema is current."""
    if not is_current():
        raise OutdatedSchema
    return {"status": "ok"}, {"Cache-Control": "no-store"}


@system.get(
    "/openapi.json",
    access=PUBLIC,
    cache=SHARED,
    returns={"type": "object"},
    description="This document",
)
def get_openapi() -> Reply:
    """Return the OpenAPI 3.1 document of this API."""
    return openapi.document(current_app, request.script_root)


@system.get(
    "/docs",
    access=PUBLIC,
    cache=SHARED,
    returns={"type": "string"},
    media_type="text/html",
    description="A page",
)
def show_docs() -> Reply:
    """Show a page to read about and try the API."""
    response = Response(render_template("docs.html"))
    response.headers["Content-Security-Policy"] = PAGE_POLICY
    return response


@system.get(
    "/static/<path:filename>", access=PUBLIC, cache=SHARED, any_query=True, documented=False
)
def get_static(filename: str) -> Reply:
    """Serve a static file."""
    return send_static_file(filename)


system.add_app_template_global(static_url)
system.add_app_template_global(script_urls)


@root.get("/", access=PUBLIC, any_query=True, documented=False)
def get_root() -> Reply:
    """Redirect to the API documentation, where there are no pages."""
    return current_app.make_response(redirect(external_url("system.show_docs")))


@system.get("/docs/<path:filename>", access=PUBLIC, cache=SHARED, any_query=True, documented=False)
def get_docs_asset(filename: str) -> Reply:
    """Serve a file of Swagger UI, from its package."""
    return send_one_of(SWAGGER_UI, filename)
