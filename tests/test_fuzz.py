"""Responses to generated requests match the OpenAPI document (`make fuzz` sends more requests)."""

import os
from collections.abc import Mapping
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    positive_data_acceptance,
    unsupported_method,
)

from posting import create_app
from posting.schemas.fields import EXAMPLE_ID
from tests.conftest import TOKEN
from tests.helpers.assertions import without_extra_properties

CASES = int(os.environ.get("FUZZ_CASES", "0"))
PLACEHOLDER = "session=of-a-new-session"


class Service:
    """The WSGI app under test, with a session and an object for each request that names them.

    The requests are generated before there is a database, and may sign out or delete the object. So
    they contain a placeholder for the session and the example id of the document, which are
    replaced here.
    """

    app = create_app({"TESTING": True, "DATABASE_URL": "sqlite://"})
    sign_in: Any = None
    client: Any = None

    def __call__(self, environ, start_response):
        if PLACEHOLDER in environ.get("HTTP_COOKIE", ""):
            client = self.signed_in_client()
            cookie = f"session={client.session_token}"
            environ["HTTP_COOKIE"] = environ["HTTP_COOKIE"].replace(PLACEHOLDER, cookie)
            if EXAMPLE_ID in environ["PATH_INFO"]:
                id = self.create_object(client, environ["PATH_INFO"].split("/")[1])
                environ["PATH_INFO"] = environ["PATH_INFO"].replace(EXAMPLE_ID, id)
        return self.app.wsgi_app(environ, start_response)

    def signed_in_client(self):
        """Return the client of the last request, or a new one if its session has ended."""
        if self.client is None or self.client.get("/users/me").status_code != 200:
            self.client = self.sign_in("fuzzer")
        return self.client

    def create_object(self, client, resource):
        """Return the id of an object of the client's user; a post has a comment and an image."""
        if resource == "users":
            return client.user["id"]
        if resource == "sessions":
            return client.get("/sessions").json[0]["id"]
        if resource == "tokens":
            return client.post("/tokens", json=TOKEN).json["id"]
        post = client.create_post("On engines")
        comment, image = client.add_comment(post, "Indeed."), client.add_image(post)
        return {"posts": post, "comments": comment, "images": image}[resource]["id"]


service = Service()
document = service.app.test_client().get("/openapi.json").json
schema = schemathesis.openapi.from_dict(without_extra_properties(document))
schema.app = service
# 412 is the right response to a generated If-Match.
checks = schema.config.checks
checks.positive_data_acceptance.expected_statuses.append("412")


@schema.auth()
class Auth:
    """Add the placeholder for a session to every request."""

    def get(self, case, context):
        return PLACEHOLDER.partition("=")[2]

    def set(self, case, data, context):
        case.cookies["session"] = data


@pytest.mark.fuzz
@schema.parametrize()
@settings(
    max_examples=CASES or 25,
    derandomize=not CASES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_responses_match_the_document(case, app, sign_in, status_counts):
    if service.sign_in is not sign_in:  # the first request of an operation, on an empty database
        service.app, service.sign_in, service.client = app, sign_in, None
    excluded = [positive_data_acceptance] if may_be_422(case) else []
    if case.operation.path in {"/signin", "/signup"}:  # a GET of these is a page
        excluded += [allow_header_conformance, unsupported_method]
    response = case.call()
    status_counts[f"{response.status_code} of {case.operation.label}"] += 1
    case.validate_response(response, excluded_checks=excluded)


def may_be_422(case):
    """Return whether the request has an input whose schema cannot say which values are valid."""
    return any(
        isinstance(given, Mapping) and not given.keys().isdisjoint(names)
        for given, names in (
            (case.query, {"cursor", "expand", "q", "sort"}),
            (case.headers, {"Idempotency-Key"}),
            (case.body, {"password", "parent_id", "file", "expires_at"}),
        )
    )
