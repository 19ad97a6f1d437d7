"""The service about itself: is it alive and ready, and what does its interface look like."""

from importlib.resources import files
from typing import Any

from flask import Response, current_app, jsonify, redirect, render_template, send_from_directory
from werkzeug.exceptions import NotFound, ServiceUnavailable

from posting.db.migrations import is_current
from posting.http.access_log import MEDIA_TYPE, render_metrics
from posting.http.endpoint import Blueprint, public
from posting.http.urls import external_url
from posting.schemas import base as base_schemas

system = Blueprint("system", __name__, description="The service about itself")

SWAGGER_UI = files("flask_swagger_ui") / "dist"
# Swagger UI draws its icons from data: URLs and the pictures that it was answered from blob: ones;
# everything else comes from this service.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@system.get("/healthz")
@public
@system.response(200, base_schemas.Health)
def check_health() -> Any:
    """Tell that the process lives."""
    return {"status": "ok"}, {"Cache-Control": "no-store"}


@system.get("/readyz")
@public
@system.response(200, base_schemas.Health)
def check_readiness() -> Any:
    """Tell whether the database answers and its schema is current."""
    if not is_current():
        raise ServiceUnavailable("The schema is not current. Run: flask db upgrade", retry_after=60)
    return {"status": "ok"}, {"Cache-Control": "no-store"}


@system.get("/metrics", documented=False)
@public
def get_metrics() -> Any:
    """Tell Prometheus what is going on, where that is switched on."""
    if current_app.config["METRICS"] == "off":
        raise NotFound
    headers = {"Cache-Control": "no-store"}
    return Response(render_metrics(), headers=headers, content_type=MEDIA_TYPE)


@system.get("/openapi.json")
@public
@system.response(200, {"type": "object"}, description="This document")
def get_openapi() -> Any:
    """Describe this interface, as OpenAPI 3.1."""
    return jsonify(current_app.extensions["posting.api"].document())


@system.get("/", documented=False)
@public
def get_root() -> Any:
    """Redirect to the docs page."""
    return redirect(external_url("system.show_docs"))


@system.get("/docs")
@public
@system.response(200, {"type": "string"}, content_type="text/html", description="A page")
def show_docs() -> Any:
    """Show a page to read about and try this interface."""
    response = Response(render_template("docs.html"))
    response.headers["Content-Security-Policy"] = PAGE_POLICY
    return response


@system.get("/docs/<path:filename>", documented=False)
@public
def get_docs_asset(filename: str) -> Any:
    """Serve what the docs page is made of, from the package that brings Swagger UI."""
    return send_from_directory(str(SWAGGER_UI), filename)
