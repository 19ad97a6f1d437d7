"""Properties of all pages: the policy, caching, escaping, and the setting that turns them off."""

import pytest

from tests.helpers.assertions import assert_problem
from tests.helpers.pages import path_of

HOSTILE = "\"><script>alert(1)</script>'&{{ 7*7 }}"


@pytest.mark.parametrize("path", ["/", "/p/{id}", "/@alice"])
def test_names_in_the_query_that_trackers_add_are_ignored(read, post, path):
    read(path.format(**post) + "?fbclid=x&utm_source=y&utm_source=z")
    assert "This link is not valid" in read(path.format(**post) + "?cursor=x", 422).text


@pytest.mark.parametrize("path", ["/write", "/signin", "/signup", "/reset", "/settings"])
def test_pages_with_forms_say_that_they_need_javascript(read, path):
    page = read(path)
    assert page.all("noscript")
    assert page.all("form", method="post") == page.all("form", inert=None) != []


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/search?q=engines",
        "/p/{id}",
        "/p/{id}/edit",
        "/@alice",
        "/write",
        "/signin",
        "/reset",
        "/settings",
        "/inbox",
        "/moderation",
        "/no",
    ],
)
def test_the_policy_of_pages_allows_nothing_inline_and_no_other_server(anonymous, path, post):
    headers = anonymous.get(path.format(**post), headers={"Accept": "text/html"}).headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["img-src"] == "'self' blob:"
    assert policy["form-action"] == "'self'"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/search?q=a",
        "/p/{post}",
        "/@alice",
        "/write",
        "/p/{post}/edit",
        "/settings",
        "/inbox",
        "/moderation",
        "/signin",
        "/signup",
        "/reset",
    ],
)
@pytest.mark.usefixtures("alice")
def test_a_page_is_the_same_for_everybody(path, request, post):
    path = path.format(post=post["id"])
    clients = map(request.getfixturevalue, ("anonymous", "alice", "bob", "moderator"))
    responses = [client.get(path) for client in clients]
    assert len({response.data for response in responses}) == 1
    assert {response.headers["Cache-Control"] for response in responses} == {
        "public, max-age=0, must-revalidate"
    }
    assert len({response.headers["ETag"] for response in responses}) == 1
    assert {"Set-Cookie", "Vary"}.isdisjoint(responses[1].headers.keys())


def test_a_page_that_has_not_changed_gets_304(anonymous, alice, post):
    etag = anonymous.get(path_of(post)).headers["ETag"]
    again = anonymous.get(path_of(post), headers={"If-None-Match": etag})
    assert (again.status_code, again.data) == (304, b"")
    alice.add_comment(post, "A comment")
    assert anonymous.get(path_of(post), headers={"If-None-Match": etag}).status_code == 200


def test_what_users_write_is_escaped_everywhere(sign_in, read):
    client = sign_in("mallory", display_name=HOSTILE[:64])
    client.patch(f"/users/{client.user['id']}", json={"bio": HOSTILE})
    post = client.create_post(HOSTILE, content=HOSTILE)
    client.add_image(post, alt=HOSTILE)
    client.add_comment(post, HOSTILE)
    for path in ("/", path_of(post), f"{path_of(post)}/edit", "/@mallory"):
        page = read(path)
        assert len(page.all("script")) == 2
        assert "49" not in page.text
        assert any(HOSTILE[:30] in text for text in page.texts), path
    assert read(path_of(post)).all("img", alt=HOSTILE)


class TestWithoutPages:
    @pytest.fixture
    def client(self, make_app):
        return make_app(PAGES="off").test_client()

    def test_the_root_redirects_to_the_documentation(self, client):
        response = client.get("/")
        assert (response.status_code, response.headers["Location"]) == (
            302,
            "http://localhost/docs",
        )

    @pytest.mark.parametrize("path", ["/write", "/settings", "/@alice", "/robots.txt", "/preview"])
    def test_there_are_no_pages(self, client, path):
        assert_problem(client.get(path, headers={"Accept": "text/html"}), 404)

    def test_sign_in_is_only_posted(self, client):
        assert_problem(client.get("/signin"), 405)
