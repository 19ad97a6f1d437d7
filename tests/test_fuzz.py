"""Responses to generated requests match the OpenAPI document (`make fuzz` sends more requests)."""

from collections.abc import Mapping
from typing import Any

import pytest
import schemathesis
from hypothesis import settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from posting import create_app
from posting.accounts.fields import RESERVED_USERNAMES
from posting.characters import has_visible, leaves_direction_open
from posting.web.schemas import EXAMPLE_ID, EXAMPLE_TOKEN
from tests.conftest import MANY, TOKEN, add_topic, apply, invite, report, set_avatar, set_picture
from tests.helpers.assertions import strict
from tests.web.test_access import BODIES

PLACEHOLDER = "session=of-a-new-session"


class Service:
    """The WSGI app under test, with a session and an object for each request that names them.

    The requests are generated before there is a database, and may sign out or delete the object. So
    they contain a placeholder for the session, and the example id and username of the document,
    which are replaced here.
    """

    app = create_app({"TESTING": True, "DATABASE_URL": "sqlite://"})
    sign_in: Any = None
    client: Any = None

    def __call__(self, environ, start_response):
        if PLACEHOLDER in environ.get("HTTP_COOKIE", ""):
            client = self.signed_in_client()
            cookie = f"session={client.session_token}"
            environ["HTTP_COOKIE"] = environ["HTTP_COOKIE"].replace(PLACEHOLDER, cookie)
            path = environ["PATH_INFO"].replace("/@ada/", f"/@{client.user['username']}/")
            if EXAMPLE_TOKEN in path:
                path = path.replace(EXAMPLE_TOKEN, self.feed_token(client))
            if EXAMPLE_ID in path:
                resource = path.partition(EXAMPLE_ID)[0].split("/")[-2]
                path = path.replace(EXAMPLE_ID, self.create_object(client, resource))
            environ["PATH_INFO"] = path
        return self.app.wsgi_app(environ, start_response)

    def signed_in_client(self):
        """Return the client of the last request, or a new one if its session has ended."""
        if self.client is None or self.client.get("/users/me").status_code != 200:
            self.client = self.sign_in("fuzzer", role="owner")
        return self.client

    def feed_token(self, client):
        [token, *_] = client.get("/tokens").json or [None]
        if token:  # its secret is not known, and a user has fifty tokens at most
            client.delete(f"/tokens/{token['id']}")
        return client.post("/tokens", json=TOKEN | {"scope": "feed"}).json["token"]

    def create_object(self, client, resource):
        """Return the id of an object of the client's user; a post has a comment and an image."""
        if resource in {"users", "notifications", "letter"}:  # mails of an unknown mailbox
            return client.user["id"]
        if resource in {"sessions", "avatars"}:
            of_user = client.get("/sessions").json[0]["id"]
            return of_user if resource == "sessions" else set_avatar(client).rpartition("/")[2]
        if resource in {"logo", "cover", "applications"}:
            is_picture = resource != "applications"
            return set_picture(self.app, resource) if is_picture else apply(self.app)
        if resource == "invitations":
            return invite(self.app, client.user["id"])
        if resource in {"tokens", "webhooks"}:  # of which a user can have few
            body = TOKEN if resource == "tokens" else BODIES["POST /webhooks"]
            created = client.get(f"/{resource}").json or [
                client.post(f"/{resource}", json=body).json
            ]
            return created[0]["id"]
        post = client.create_post("On engines")
        comment, image = client.add_comment(post, "Indeed."), client.add_image(post)
        client.patch(f"/posts/{post['id']}", json={"files": [client.send_file()["id"]]})
        [file] = client.get(f"/posts/{post['id']}").json["files"]
        objects = {"posts": post, "p": post, "comments": comment, "images": image, "files": file}
        topics = client.get("/topics").json or [{"id": add_topic(self.app)}]
        objects |= {"topics": topics[0], "t": topics[0]}
        return report(client, comment) if resource == "reports" else objects[resource]["id"]


service = Service()
document = service.app.test_client().get("/openapi.json").json
changes = document["components"]["schemas"]["SiteChange"]["properties"]
changes["accent"]["pattern"] = "^#(?:[0-5][0-9a-f]){3}$"  # dark enough to be read on a light page
schema = schemathesis.openapi.from_dict(strict(document))
schema.app = service
# 412 is the right response to a generated If-Match.
checks = schema.config.checks
checks.positive_data_acceptance.expected_statuses.append("412")
# Requests with each limit of the document take most of the time, also to generate.
schema.config.phases.coverage.enabled = settings().max_examples >= MANY


@schema.auth()
class Auth:
    """Add the placeholder for a session to every request."""

    def get(self, case, context):
        return PLACEHOLDER.partition("=")[2]

    def set(self, case, data, context):
        case.cookies["session"] = data


@pytest.mark.fuzz
@schema.parametrize()
def test_responses_match_the_document(case, app, sign_in, status_counts):
    if service.sign_in is not sign_in:  # the first request of an operation, on an empty database
        service.app, service.sign_in, service.client = app, sign_in, None
    excluded = [positive_data_acceptance] if may_be_422(case) else []
    response = case.call()
    status_counts[f"{response.status_code} of {case.operation.label}"] += 1
    case.validate_response(response, excluded_checks=excluded)


def is_reserved(username):
    return isinstance(username, str) and username.lower() in RESERVED_USERNAMES


def texts_in(given):
    values = given.values() if isinstance(given, Mapping) else ()
    return [value for value in values if isinstance(value, str)]


def is_invisible(text):
    """Return whether a text is blank or leaves its direction open, beyond what patterns say."""
    return not has_visible(text) or leaves_direction_open(text)


def may_be_422(case):
    """Return whether the request has an input whose schema cannot say which values are valid."""
    if case.operation.label == "GET /users" and "username" not in (case.query or {}):
        return True  # it needs one of two names
    if isinstance(case.body, Mapping) and is_reserved(case.body.get("username")):
        return True
    if case.path == "/notifications/read":  # takes one of two fields
        return True
    if any(map(is_invisible, [*texts_in(case.body), *texts_in(case.query)])):
        return True
    return any(
        isinstance(given, Mapping) and not given.keys().isdisjoint(names)
        for given, names in (
            (case.query, {"after", "before", "cursor", "expand", "q", "sort"}),
            (case.headers, {"Idempotency-Key"}),
            (case.body, {"password", "parent_id", "file", "expires_at", "images", "files"}),
            (case.body, {"code", "email", "endpoint", "keys", "time_zone"}),
            (case.body, {"current_password", "invitation", "up_to", "until", "ids", "shown"}),
        )
    )
