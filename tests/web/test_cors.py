"""Cross-origin resource sharing: what pages of trusted origins may read."""

import pytest

from posting.web.middleware import cors
from tests.helpers.assertions import assert_problem

TRUSTED, OTHER_TRUSTED = "https://app.example.org", "https://other.example.org"
UNTRUSTED = (
    "https://evil.example",
    "http://app.example.org",
    "https://app.example.org:8443",
    "https://app.example.org.evil.example",
    "https://APP.example.org",
    "null",
    "",
)


@pytest.fixture
def client(make_app):
    return make_app(TRUSTED_ORIGINS=f"{TRUSTED} {OTHER_TRUSTED}").test_client()


def allowed(response):
    return {
        name: value
        for name, value in response.headers.items()
        if name.startswith("Access-Control-")
    }


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/posts", 200),
        ("HEAD", "/posts", 200),
        ("GET", "/posts/short", 422),
        ("GET", "/nowhere", 404),
        ("POST", "/posts", 401),
        ("PUT", "/posts", 405),
    ],
)
def test_a_trusted_origin_reads_every_response(client, method, path, status):
    response = client.open(path, method=method, headers={"Origin": TRUSTED})
    assert response.status_code == status
    assert allowed(response) == {
        "Access-Control-Allow-Origin": TRUSTED,
        "Access-Control-Allow-Credentials": "true",
        "Access-Control-Expose-Headers": cors.EXPOSED,
    }
    assert response.headers.getlist("Vary") == ["Origin"]


@pytest.mark.parametrize("origin", UNTRUSTED)
def test_others_read_nothing(client, origin):
    for path in ("/posts", "/nowhere"):
        response = client.get(path, headers={"Origin": origin})
        assert allowed(response) == {}
        assert response.headers["Vary"] == "Origin"
    assert_problem(client.post("/signout", headers={"Origin": "https://evil.example"}), 403)


def test_a_preflight_allows_what_the_interface_takes(client):
    headers = {"Origin": TRUSTED, "Access-Control-Request-Method": "PATCH"}
    response = client.options("/posts/" + "a" * 21, headers=headers)
    assert response.status_code == 200
    assert response.headers["Access-Control-Allow-Methods"] == "GET, POST, PATCH, DELETE"
    assert response.headers["Access-Control-Max-Age"] == "7200"
    names = response.headers["Access-Control-Allow-Headers"].split(", ")
    assert {"Authorization", "Content-Type", "If-Match", "Idempotency-Key"} <= set(names)
    headers["Origin"] = "https://evil.example"
    assert allowed(client.options("/posts", headers=headers)) == {}


def test_the_document_lists_no_header_that_is_not_exposed(client):
    headers = client.get("/openapi.json").json["components"]["headers"]
    # These are for browsers, not for scripts.
    hidden = {"Cache-Control", "Set-Cookie", "WWW-Authenticate"}
    assert headers.keys() - hidden == set(cors.EXPOSED.split(", "))


def test_a_cached_response_has_the_headers_of_its_own_request(client):
    origins = [TRUSTED, None, OTHER_TRUSTED, "https://evil.example", TRUSTED]
    sent = []
    for origin in origins:
        response = client.get("/posts", headers={"Origin": origin} if origin else {})
        sent.append(response.headers.get("Access-Control-Allow-Origin"))
        assert response.headers.getlist("Vary") == ["Origin"]
    assert sent == [TRUSTED, None, OTHER_TRUSTED, None, TRUSTED]


def test_without_trusted_origins_no_response_depends_on_the_origin(anonymous):
    response = anonymous.get("/posts", headers={"Origin": TRUSTED})
    assert allowed(response) == {}
    assert "Vary" not in response.headers
