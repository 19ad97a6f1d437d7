"""Cross-origin resource sharing: what pages of other origins may read."""

import pytest

from posting.web import security
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


ORIGINS = f"{TRUSTED} {OTHER_TRUSTED}"
ANY = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": security.EXPOSED}
EVIL = "https://evil.example"
FROM_EVIL = {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"}


@pytest.fixture
def client(make_app):
    return make_app(TRUSTED_ORIGINS=ORIGINS).test_client()


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
        "Access-Control-Expose-Headers": security.EXPOSED,
    }
    assert response.headers.getlist("Vary") == ["Origin"]


@pytest.mark.parametrize("origin", UNTRUSTED)
def test_others_read_what_is_public_without_cookies(client, origin):
    for path in ("/posts", "/", "/feed.atom", "/openapi.json", "/nowhere"):
        for method in ("GET", "HEAD"):
            response = client.open(path, method=method, headers={"Origin": origin})
            assert allowed(response) == ANY
            assert response.headers["Vary"] == "Origin"


@pytest.mark.parametrize("origin", [TRUSTED, EVIL, None])
@pytest.mark.parametrize("path", ["/posts", "/", "/images/{image}", "/nowhere"])
def test_without_trusted_origins_no_response_depends_on_the_origin(anonymous, id_of, path, origin):
    """So a cache can keep one response for all origins."""
    headers = {"Origin": origin} if origin else {}
    for _ in range(2):
        response = anonymous.get(path.format(image=id_of("image")), headers=headers)
        assert allowed(response) == ANY
        assert "Vary" not in response.headers


def test_a_program_in_a_page_of_any_origin_reads_and_writes_with_a_token(anonymous, alice):
    headers = FROM_EVIL | alice.authorization()
    me = anonymous.get("/users/me", headers=headers)
    assert (me.json["username"], allowed(me)) == ("alice", ANY)
    body = {"title": "x", "content": "y"}
    created = anonymous.post("/posts", json=body, headers=headers)
    assert (created.status_code, allowed(created)) == (201, ANY)
    path = f"/posts/{created.json['id']}"
    assert anonymous.patch(path, json={"title": "z"}, headers=headers).status_code == 200
    assert anonymous.delete(path, headers=headers).status_code == 204
    refused = anonymous.post("/posts", headers=FROM_EVIL | {"Authorization": "Bearer x"})
    assert (refused.status_code, allowed(refused)) == (401, ANY)


@pytest.mark.parametrize("path", ["/signin", "/signup", "/signout", "/tokens", "/nowhere"])
def test_a_token_does_not_admit_other_origins_where_it_is_ignored(alice, path):
    headers = FROM_EVIL | {"Authorization": "Bearer x"}
    assert assert_problem(alice.post(path, headers=headers), 403)["code"] == "cross_origin"
    assert alice.get("/users/me").status_code == 200


def test_a_write_without_a_token_is_refused_by_an_error_that_its_page_can_read(alice):
    for headers in (FROM_EVIL, FROM_EVIL | {"Authorization": "Basic YTpi"}):
        response = alice.post("/posts", headers=headers)
        assert assert_problem(response, 403)["code"] == "cross_origin"
        assert allowed(response) == ANY  # but not with cookies


def test_other_responses_to_writes_without_a_token_are_not_readable(alice):
    own = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    response = alice.post("/posts", json={"title": "x", "content": "y"}, headers=own)
    assert (response.status_code, allowed(response)) == (201, {})


def test_no_cookie_is_read_across_origins(client):
    """Browsers hide a response to a request with cookies, unless it allows credentials."""
    for method in ("GET", "OPTIONS"):
        response = client.open("/users/me", method=method, headers={"Origin": EVIL})
        assert "Access-Control-Allow-Credentials" not in response.headers


@pytest.mark.parametrize("origins", ["", ORIGINS])
def test_other_origins_read_nothing_if_only_members_may_read(make_app, alice, origins):
    client = alice.copy(make_app(READING="members", TRUSTED_ORIGINS=origins))
    token = alice.authorization()
    for headers in ({"Origin": EVIL}, {"Origin": EVIL} | token, {}):
        for path in ("/posts", "/signin", "/nowhere"):
            for method in ("GET", "OPTIONS"):
                response = client.open(path, method=method, headers=headers)
                assert allowed(response) == {}
                assert response.headers.get("Vary") == ("Origin" if origins else None)
    refused = client.post("/posts", headers=FROM_EVIL | token)
    assert assert_problem(refused, 403)["code"] == "cross_origin"


def test_trusted_origins_read_what_only_members_may_read(make_app, alice):
    app = make_app(READING="members", TRUSTED_ORIGINS=ORIGINS)
    visitor = app.test_client()
    for client, headers in ((alice.copy(app), {}), (visitor, alice.authorization())):
        response = client.get("/posts", headers={"Origin": TRUSTED} | headers)
        assert response.status_code == 200
        assert allowed(response)["Access-Control-Allow-Origin"] == TRUSTED
    preflight = visitor.options("/posts", headers={"Origin": TRUSTED})
    assert preflight.status_code == 200  # without cookies
    assert "Authorization" in preflight.headers["Access-Control-Allow-Headers"]


def test_a_preflight_allows_what_the_interface_takes(client):
    headers = {"Origin": TRUSTED, "Access-Control-Request-Method": "PATCH"}
    response = client.options("/posts/" + "a" * 21, headers=headers)
    assert response.status_code == 200
    assert response.headers["Access-Control-Allow-Methods"] == "GET, POST, PUT, PATCH, DELETE"
    assert response.headers["Access-Control-Max-Age"] == "7200"
    names = response.headers["Access-Control-Allow-Headers"].split(", ")
    assert {"Authorization", "Content-Type", "If-Match", "Idempotency-Key"} <= set(names)
    headers["Origin"] = EVIL
    others = allowed(client.options("/posts", headers=headers))
    assert others == ANY | dict(security.PREFLIGHT)


def test_the_document_lists_no_header_that_is_not_exposed(client):
    headers = client.get("/openapi.json").json["components"]["headers"]
    # These are for browsers and proxies, not for scripts.
    hidden = {"Cache-Control", "Content-Disposition", "Set-Cookie", "WWW-Authenticate"}
    hidden |= {"Posting-Reading", "X-Accel-Buffering"}
    assert headers.keys() - hidden == set(security.EXPOSED.split(", "))


def test_a_cached_response_has_the_headers_of_its_own_request(client):
    origins = [TRUSTED, None, OTHER_TRUSTED, EVIL, TRUSTED]
    sent = []
    for origin in origins:
        response = client.get("/posts", headers={"Origin": origin} if origin else {})
        sent.append(response.headers.get("Access-Control-Allow-Origin"))
        assert response.headers.getlist("Vary") == ["Origin"]
    assert sent == [TRUSTED, "*", OTHER_TRUSTED, "*", TRUSTED]
