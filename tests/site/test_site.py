"""The description of a site: its name, its rules for sign-up and reading, and its limits."""

import pytest

from posting.web.endpoint import Endpoint
from tests.conftest import PASSWORD
from tests.helpers.assertions import error_locations


@pytest.fixture
def site(anonymous):
    return anonymous.get("/site").json


def test_it_names_the_community_and_who_may_enter_and_read(make_app):
    settings = {
        "NAME": "The Loom",
        "DESCRIPTION": "A place for people who weave.",
        "SIGNUP": "closed",
        "INVITATIONS": "members",
        "READING": "members",
    }
    site = make_app(**settings).test_client().get("/site").json
    assert settings.items() <= {name.upper(): value for name, value in site.items()}.items()


def test_it_is_the_same_for_everyone_in_both_modes(make_app, alice):
    for mode in ("everyone", "members"):
        app = make_app(READING=mode)
        for client in (app.test_client(), alice.copy(app)):
            response = client.get("/site")
            assert response.status_code == 200
            assert response.headers["Cache-Control"] == "public, max-age=0, must-revalidate"
            headers = {"If-None-Match": response.headers["ETag"]}
            assert client.get("/site", headers=headers).status_code == 304


def test_its_version_is_that_of_the_document(anonymous, site):
    assert site["version"] == anonymous.get("/openapi.json").json["info"]["version"]


SENDERS = {
    "username": ("POST", "/signup", "username"),
    "password": ("POST", "/signup", "password"),
    "display_name": ("PATCH", "/users/me", "display_name"),
    "bio": ("PATCH", "/users/me", "bio"),
    "application": ("POST", "/signup", "application"),
    "title": ("POST", "/posts", "title"),
    "content": ("POST", "/posts", "content"),
    "comment": ("POST", "/posts/{post}/comments", "content"),
    "alt": ("PATCH", "/images/{image}", "alt"),
}
BODIES = {
    "/signup": {"username": "newcomer", "password": PASSWORD},
    "/posts": {"title": "x", "content": "x"},
}


def test_all_texts_are_tested(site):
    assert site["texts"].keys() == SENDERS.keys()


@pytest.mark.parametrize("text", SENDERS)
def test_texts_have_the_lengths_that_it_says(text, site, alice, post, id_of):
    method, path, name = SENDERS[text]
    url = path.format(post=post["id"], image=id_of("image"))

    def send(length):
        value = ("x9" * length)[:length]
        body = BODIES.get(path, {}) | {name: value}
        if name in {"password", "application"}:
            body["username"] = f"newcomer-{length}"
        return alice.open(url, method=method, json=body)

    shortest, longest = site["texts"][text]["min"], site["texts"][text]["max"]
    if shortest:
        assert error_locations(send(shortest - 1)) == {f"/{name}"}
    assert error_locations(send(longest + 1)) == {f"/{name}"}
    for length in (shortest, longest):
        assert send(length).status_code in {200, 201}


def test_the_length_of_a_password_is_the_setting(make_app):
    site = make_app(PASSWORD_MIN=15).test_client().get("/site").json
    assert site["texts"]["password"] == {"min": 15, "max": 256}


def test_sizes_are_the_settings(make_app, anonymous):
    sizes = {"MAX_JSON_BYTES": 2048, "MAX_IMAGE_BYTES": 4096}
    site = make_app(**sizes).test_client().get("/site").json
    assert (site["max_json_bytes"], site["images"]["max_bytes"]) == (2048, 4096)
    assert site["images"]["per_post"] == 10
    assert "image/png" in site["images"]["media_types"]


def test_pages_have_the_sizes_that_it_says(site, anonymous, post):
    sizes = site["page_sizes"]
    for path, most in (
        ("/posts?limit={}", sizes["max"]),
        ("/posts?expand=content&limit={}", sizes["max_expanded"]),
        (f"/posts/{post['id']}/comments?limit={{}}", sizes["max"]),
    ):
        assert anonymous.get(path.format(most)).status_code == 200
        assert error_locations(anonymous.get(path.format(most + 1))) == {"limit"}
    parameters = {
        name: anonymous.get("/openapi.json").json["paths"][path]["get"]["parameters"]
        for name, path in (("posts", "/posts"), ("comments", "/posts/{id}/comments"))
    }
    for name, listed in parameters.items():
        [limit] = [each for each in listed if each["name"] == "limit"]
        assert limit["schema"]["default"] == sizes[name]


@pytest.mark.posting_settings(INVITATIONS="members")
def test_a_user_may_have_as_many_things_as_it_says(site, alice):
    for kind, path in (("tokens", "/tokens"), ("open_invitations", "/invitations")):
        body = {"name": "x", "scope": "read"} if kind == "tokens" else {}
        for _ in range(site["users"][kind]):
            assert alice.post(path, json=body).status_code == 201
        assert alice.post(path, json=body).status_code == 409


def test_rate_limits_are_those_of_the_headers(make_app, alice, app):
    other = make_app(
        RATE_LIMITS="on", LIMIT_POSTS="7/minute", LIMIT_SIGNIN="off", LIMIT_PASSWORDS="9/hour"
    )
    client = alice.copy(other)
    limits = {limit["name"]: limit for limit in client.get("/site").json["rate_limits"]}
    declared = {
        limit.name
        for view in app.view_functions.values()
        if isinstance(view, Endpoint)
        for limit in view.limits
    }
    assert limits.keys() - declared == {"passwords", "passwords-address", "mentions"}
    assert declared - limits.keys() == {"signin", "signin-address"}
    assert limits["passwords-address"]["requests"] == 45
    assert limits["posts"] == {"name": "posts", "requests": 7, "seconds": 60}
    assert limits["previews"]["requests"] == 28
    created = client.post("/posts", json={"title": "x", "content": "y"})
    assert created.headers["RateLimit-Policy"] == '"posts";q=7;w=60'


def test_without_limits_it_lists_none(site):
    assert site["rate_limits"] == []
