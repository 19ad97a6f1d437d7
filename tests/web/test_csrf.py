"""Cross-origin protection: writes from another site are refused."""

import re

import pytest

from tests.helpers.assertions import assert_problem

SAFE, UNSAFE = ("GET", "HEAD", "OPTIONS"), ("POST", "PUT", "PATCH", "DELETE")
TRUSTED = "https://app.example.org"
OWN = ("http://localhost", "https://localhost")
FOREIGN = (
    "https://evil.example",
    "http://localhost:8000",
    "http://localhost.evil.example",
    "http://app.example.org",
    "https://app.example.org:8443",
    "https://app.example.org.evil.example",
    "null",
    "localhost",
    "http://",
    "http://[",
)
ABSENT = (None, "")
ALL = (*ABSENT, *OWN, TRUSTED, *FOREIGN)
# The origins from which a write is accepted, for each Sec-Fetch-Site.
ACCEPTED = {
    None: (*ABSENT, *OWN, TRUSTED),
    "": (*ABSENT, *OWN, TRUSTED),
    "same-origin": ALL,
    "none": ALL,
    "same-site": (TRUSTED,),
    "cross-site": (TRUSTED,),
    "Same-Origin": (TRUSTED,),
    "none, none": (TRUSTED,),
}


@pytest.fixture
def refused(make_app):
    client = make_app(TRUSTED_ORIGINS=f"https://other.example.org {TRUSTED}").test_client()

    def refused(method, path, site, origin):
        sent = {"Sec-Fetch-Site": site, "Origin": origin}
        headers = {name: value for name, value in sent.items() if value is not None}
        response = client.open(path, method=method, headers=headers)
        assert response.status_code != 500
        if method == "HEAD" or "another site" not in response.text:
            return False
        assert_problem(response, 403)
        return True

    return refused


@pytest.mark.parametrize("site", ACCEPTED)
@pytest.mark.parametrize("method", [*SAFE, *UNSAFE])
def test_only_own_and_trusted_origins_may_write(refused, method, site):
    for origin in ALL:
        accepted = method in SAFE or origin in ACCEPTED[site]
        assert refused(method, "/posts", site, origin) != accepted, origin


def test_every_route_is_protected(app, refused):
    for rule in app.url_map.iter_rules():
        path = re.sub("<[^<>]*>", "a" * 21, rule.rule)
        for method in rule.methods - set(SAFE):
            assert refused(method, path, "cross-site", "https://evil.example"), rule.rule
    assert refused("POST", "/no/such/path", "cross-site", None)


def test_it_is_checked_before_everything_else(alice, post):
    headers = {"Origin": "https://evil.example", "Content-Type": "text/plain"}
    for client, path in ((alice, "/posts"), (alice, "/posts/short/images"), (alice, "/signin")):
        assert_problem(client.post(path, data=b"x" * 2**21, headers=headers), 403)
    assert_problem(alice.delete(f"/posts/{post['id']}", headers=headers), 403)
    assert alice.get(f"/posts/{post['id']}").status_code == 200


BROWSER = {"Origin": "https://example.org:8443"}


class TestBehindAProxy:
    """A browser at https://example.org:8443; the proxy does not forward the port."""

    @pytest.fixture
    def client(self, make_app):
        return make_app(PUBLIC_URL="https://example.org:8443", PROXY_HOPS=1).test_client()

    def sign_up(self, client, headers):
        forwarded = {"Host": "127.0.0.1:8000", "X-Forwarded-Host": "example.org"}
        ada = {"username": "ada", "password": "a long walk by the sea"}
        return client.post("/signup", json=ada, headers=forwarded | headers)

    def test_a_browser_with_fetch_metadata(self, client):
        headers = BROWSER | {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
        assert self.sign_up(client, headers).status_code == 201

    def test_a_browser_without_fetch_metadata(self, client):
        assert self.sign_up(client, BROWSER).status_code == 201

    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": "https://evil.example"},
            {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
            {"Origin": "https://sub.example.org:8443", "Sec-Fetch-Site": "same-site"},
            {"Origin": "https://example.org:9000"},
        ],
    )
    def test_another_site(self, client, headers):
        assert_problem(self.sign_up(client, headers), 403)
