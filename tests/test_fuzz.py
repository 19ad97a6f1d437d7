"""Generated requests against what the OpenAPI document promises (`make fuzz` sends more)."""

import os
from collections.abc import Mapping
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from posting import create_app
from posting.schemas.fields import EXAMPLE_ID
from tests.helpers.assertions import closed

CASES = int(os.environ.get("FUZZ_CASES", "0"))


SIGNED_IN = "session=a-user-signed-in-anew"


class Service:
    """The WSGI app under test, in which the document's examples exist.

    Cases are made before any app is, and sign out and delete as they go. So they name a stand-in
    for a session, and the example id; here these become a fresh session and what it owns.
    """

    app = create_app({"TESTING": True, "DATABASE_URL": "sqlite://"})
    sign_in: Any = None

    def __call__(self, environ, start_response):
        if SIGNED_IN in environ.get("HTTP_COOKIE", ""):
            client = self.sign_in("fuzzer")
            cookie = f"session={client.get_cookie('session').value}"
            environ["HTTP_COOKIE"] = environ["HTTP_COOKIE"].replace(SIGNED_IN, cookie)
            post = client.create_post("On engines")
            owned = {
                "posts": post["id"],
                "comments": client.add_comment(post, "Indeed.")["id"],
                "images": client.add_image(post)["id"],
                "users": client.user["id"],
                "sessions": client.get("/sessions").json[0]["id"],
            }
            resource = environ["PATH_INFO"].split("/")[1]
            path = environ["PATH_INFO"].replace(EXAMPLE_ID, owned.get(resource, ""))
            environ["PATH_INFO"] = path
        return self.app.wsgi_app(environ, start_response)


service = Service()
document = service.app.test_client().get("/openapi.json").json
schema = schemathesis.openapi.from_dict(closed(document))
schema.app = service
# A precondition that fails is the right answer to a made-up If-Match.
checks = schema.config.checks
checks.positive_data_acceptance.expected_statuses.append("412")


@schema.auth()
class Auth:
    """Sign every case in."""

    def get(self, case, context):
        return SIGNED_IN.partition("=")[2]

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
def test_the_service_does_what_its_document_says(case, app, sign_in, answers):
    service.app, service.sign_in = app, sign_in
    excluded = [positive_data_acceptance] if names_what_only_we_know(case) else []
    response = case.call()
    answers[f"{response.status_code} of {case.operation.label}"] += 1
    case.validate_response(response, excluded_checks=excluded)


def names_what_only_we_know(case):
    """Tell of what no schema says if it is good, so that 422 is a right answer."""
    return any(
        isinstance(given, Mapping) and not given.keys().isdisjoint(names)
        for given, names in (
            (case.query, {"cursor"}),
            (case.headers, {"Idempotency-Key"}),
            (case.body, {"password", "parent_id", "file"}),
        )
    )
