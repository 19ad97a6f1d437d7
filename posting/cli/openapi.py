"""`flask openapi`: the OpenAPI document."""

import json

import click
from flask import current_app
from flask.cli import AppGroup

from posting.cli.examples import example
from posting.http.openapi import document

openapi = AppGroup("openapi", help="The OpenAPI document of the API.")


@example("flask openapi print > openapi.json")
@openapi.command("print")
def print_document() -> None:
    """Print the OpenAPI document as JSON."""
    click.echo(json.dumps(document(current_app, server="/"), indent=2))
