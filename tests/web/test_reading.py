"""Reading for members only: visitors get no content, and no sign of what there is."""

import re

import pytest

from tests.helpers import pictures
from tests.helpers.assertions import assert_problem

pytestmark = pytest.mark.posting_settings(READING="members")

MARK = "zyzzyva"  # in all that is written, so that it can be found in a response
CHOICES = {"side": "640", "name": "minutes.txt", "reaction": "heart"}  # in paths
UNKNOWN = {"id": "u" * 21, "username": "unknown", "token": "unknown"}
MALFORMED = {"id": "short", "username": "a.b", "token": "~"}
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


@pytest.fixture
def content(alice):
    """Ids and names of what Alice has written, by the names in the rules of routes."""
    alice.patch("/users/me", json={"display_name": f"{MARK} Ada", "bio": f"About {MARK}"})
    post = alice.create_post(f"On {MARK}", content=f"They *weave* {MARK}.")
    image = alice.add_image(post, pictures.photo(), alt=f"A {MARK}")
    file = alice.send_file(MARK.encode(), "minutes.txt")
    alice.patch(f"/posts/{post['id']}", json={"files": [file["id"]]})
    comment = alice.add_comment(post, f"More {MARK}")
    return {
        "/posts": post["id"],
        "/p": post["id"],
        "/comments": comment["id"],
        "/images": image["id"],
        "/files": file["id"],
        "/users": alice.user["id"],
        "username": "alice",
        "token": "unknown",
    }


@pytest.fixture
def urls_of(app, content):
    """Return a function that fills the rules of all routes with ids that exist, or others."""

    def urls_of(values=None):
        for rule in app.url_map.iter_rules():
            folder = re.match("(/feeds/<token>)?(/[a-z]*)?", rule.rule)[2]

            def fill(name, folder=folder):
                if name[1] == "filename":
                    return "pages.css" if folder == "/static" else "swagger-ui.css"
                if name[1] in CHOICES:
                    return CHOICES[name[1]]
                if values:
                    return values[name[1]]
                return content.get(name[1]) or content.get(folder) or UNKNOWN["id"]

            yield re.sub(r"<(?:[^<>]*:)?(\w+)>", fill, rule.rule)
        for query in ("posts?limit=1", f"posts?q={MARK}", f"search?q={MARK}", "?sort=active"):
            yield f"/{query}"
        for query in (
            "posts?expand=content,images,files",
            "users?username=alice",
            "posts/",
            "nothing",
        ):
            yield f"/{query}"

    return urls_of


def answer(client, url, method="GET"):
    """Return all that a response says, without what differs from request to request."""
    with client.open(url, method=method) as response:
        head = {
            name: value
            for name, value in response.headers
            if name not in {"X-Request-ID", "Content-Length", "Date"}
        }
        text = response.data
    text = re.sub(rb'"request_id":"[^"]*"', b"", text)
    text = re.sub(rb'next=[^"]*"|Request [^ ]*', b"", text)
    here = url.partition("?")[0].encode()
    return response.status_code, head, text.replace(b'href="%b"' % here, b"")


def read_everything(client, urls_of):
    for url in urls_of():
        for _ in range(2):
            client.get(url).close()


def test_a_visitor_gets_no_content_before_and_after_a_member_has_read_everything(
    alice, anonymous, reader, urls_of, content
):
    picture = alice.get(f"/images/{content['/images']}").data
    before = {url: answer(anonymous, url) for url in urls_of()}
    read_everything(alice, urls_of)
    read_everything(reader, urls_of)
    assert MARK in alice.get("/").text
    for url, response in before.items():
        assert answer(anonymous, url) == response, url
        _, head, body = response
        assert MARK.encode() not in body.replace(url.encode(), b""), url
        assert picture not in body
        assert "alice" not in str(head)


def test_a_visitor_cannot_tell_what_exists_from_what_does_not(alice, anonymous, urls_of):
    """Neither by the response nor by its headers, whatever the method, also from warm caches."""
    read_everything(alice, urls_of)
    for existing, unknown, malformed in zip(
        urls_of(), urls_of(UNKNOWN), urls_of(MALFORMED), strict=True
    ):
        for method in METHODS:
            response = answer(anonymous, existing, method)
            assert answer(anonymous, unknown, method) == response, (method, unknown)
            # Some malformed URLs are not those of the route, so the format can be another.
            if method != "OPTIONS" and not existing.startswith(
                ("/unsubscribe/", "/site/logo/", "/site/cover/")  # which are open
            ):
                assert answer(anonymous, malformed, method)[0] == response[0], malformed


def test_unknown_paths_and_methods_get_401_for_visitors_only(anonymous, alice, reader):
    for path in ("/nothing", "/posts/a/b", "/p/short", "/static", "/feeds/x", "/feeds/x/y/z"):
        assert_problem(anonymous.get(path), 401)
        for member in (alice, reader):
            assert_problem(member.get(path), 404)
    assert_problem(anonymous.put("/posts"), 401)
    assert_problem(alice.put("/posts"), 405)


def test_options_of_a_route_needs_no_user(anonymous):
    """Browsers send no cookies with a preflight."""
    response = anonymous.options("/posts")
    assert (response.status_code, "GET" in response.allow) == (200, True)
    assert_problem(anonymous.options("/nothing"), 401)


def test_a_view_that_declares_nothing_is_refused(make_app, alice, anonymous):
    app = make_app(READING="members")
    app.add_url_rule("/extra", "extra", lambda: "content")
    assert_problem(anonymous.copy(app).get("/extra"), 401)
    assert alice.copy(app).get("/extra").text == "content"
    assert make_app().test_client().get("/extra").status_code == 404


@pytest.mark.parametrize("path", ["/posts/{id}", "/p/{id}", "/", "/search", "/feed.atom"])
def test_what_a_member_reads_is_private(alice, reader, content, path):
    url = path.format(id=content["/posts"])
    for client in (alice, reader):
        for _ in range(2):  # also from the worker's cache
            response = client.get(url)
            assert response.status_code == 200
            assert response.headers["Cache-Control"] == "private, no-store"
        headers = {"If-None-Match": response.headers["ETag"]}
        unchanged = client.get(url, headers=headers)
        assert unchanged.status_code == 304
        assert unchanged.headers["Cache-Control"] == "private, no-store"


def test_a_visitor_gets_no_304(alice, anonymous, content):
    for url in ("/", "/posts", f"/posts/{content['/posts']}", f"/images/{content['/images']}"):
        tag = alice.get(url).headers["ETag"]
        for sent in (tag, "*"):
            assert anonymous.get(url, headers={"If-None-Match": sent}).status_code == 401


@pytest.mark.parametrize(
    ("origins", "policy"), [("", "same-origin"), ("https://app.example.org", "same-site")]
)
def test_an_image_is_private_and_not_shown_by_other_sites(
    make_app, alice, content, origins, policy
):
    app = make_app(READING="members", TRUSTED_ORIGINS=origins)
    image = alice.copy(app).get(f"/images/{content['/images']}")
    assert image.status_code == 200
    assert image.headers["Cache-Control"] == "private, max-age=31536000, immutable"
    assert image.headers["Cross-Origin-Resource-Policy"] == policy


def test_what_is_open_may_stay_in_shared_caches(alice, anonymous):
    for client in (alice, anonymous):
        for path in ("/signin", "/openapi.json", "/robots.txt"):
            header = client.get(path).headers["Cache-Control"]
            assert header == "public, max-age=0, must-revalidate"


def test_robots_are_told_to_go(anonymous):
    assert anonymous.get("/robots.txt").text == "User-agent: *\nDisallow: /\n"
    root = {"SCRIPT_NAME": "/community"}
    robots = anonymous.get("/robots.txt", environ_overrides=root).text
    assert robots == "User-agent: *\nDisallow: /community/\n"


@pytest.mark.parametrize("accept", ["text/html", "*/*"])
def test_a_page_is_the_form_to_sign_in_for_visitors(anonymous, accept):
    response = anonymous.get("/@alice?show=comments&x=%C3%A4", headers={"Accept": accept})
    assert response.status_code == 401
    assert response.mimetype == "text/html"
    assert '<form class="narrow" method="post" action="/signin"' in response.text
    assert 'href="/signup?next=%2F%40alice%3Fshow%3Dcomments%26x%3D%25C3%25A4"' in response.text
    assert "WWW-Authenticate" in response.headers


def test_a_query_in_another_encoding_is_no_error(anonymous):
    response = anonymous.get("/search", environ_overrides={"QUERY_STRING": "q=\xff\xfe"})
    assert response.status_code == 401


def test_an_unknown_path_is_the_form_to_sign_in_for_browsers(anonymous):
    response = anonymous.get("/nothing", headers={"Accept": "text/html"})
    assert (response.status_code, response.mimetype) == (401, "text/html")
    assert 'href="/signup?next=%2Fnothing"' in response.text


def test_the_api_and_feeds_have_problems_also_for_browsers(anonymous):
    for path in ("/posts", "/feed.atom", "/images/" + "a" * 21):
        problem = assert_problem(anonymous.get(path, headers={"Accept": "text/html"}), 401)
        assert problem["code"] == "not_signed_in"


@pytest.mark.parametrize("path", ["/posts", "/", "/feed.json"])
def test_an_invalid_token_is_named(anonymous, alice, path):
    bad = {"Authorization": "Bearer x"}
    for client in (anonymous, alice):  # a token wins over a session
        for _ in range(2):
            response = client.get(path, headers=bad)
            assert response.status_code == 401
            assert response.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
        alice.get(path)  # now it is in the cache
