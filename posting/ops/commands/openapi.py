"""`flask openapi`: the OpenAPI document."""

import json

import click
from flask import current_app
from flask.cli import AppGroup

from posting.cli import examples
from posting.web.openapi import document


@examples("flask openapi print")
@click.group(cls=AppGroup)
def openapi() -> None:
    """Work with the OpenAPI document of the API."""


@examples("flask openapi print > openapi.json")
@openapi.command("print")
def print_document() -> None:
    """Print the OpenAPI document as JSON."""
    click.echo(json.dumps(document(current_app), indent=2))
