"""The service itself: health, metrics and documentation."""

from importlib.resources import files
from pathlib import Path

from flask import Response, current_app, redirect, render_template, request
from werkzeug.exceptions import ServiceUnavailable

from posting.db.migrations.revisions import is_current
from posting.web import openapi
from posting.web.endpoint import PUBLIC, SHARED, Blueprint, Reply
from posting.web.schemas import Health
from posting.web.static_files import (
    read_files,
    script_urls,
    send_one_of,
    send_static_file,
    static_url,
)
from posting.web.urls import external_url

system = Blueprint("system", __name__, description="Health and documentation")

# Registered instead of the pages if they are off.
root = Blueprint("root", __name__, description="Redirect")

SWAGGER_UI = read_files(Path(str(files("flask_swagger_ui"))) / "dist")  # 2.5 MB, for all workers
# Swagger UI draws icons from data: URLs and images of responses from blob: URLs.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


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
