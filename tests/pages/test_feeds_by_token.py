"""Feeds with a token in their path, which feed readers can read if only members may."""

import logging
import re
from runpy import run_path

import pytest
import sqlalchemy as sa
from lxml import etree

from posting.accounts.models import Token
from posting.db.base import db
from posting.db.types import now
from posting.web.response_cache import EXTENSION
from tests.accounts.test_tokens import change_password, delete_account, reset_password, suspend
from tests.conftest import TOKEN
from tests.helpers import ROOT
from tests.helpers.assertions import assert_problem
from tests.pages.test_feeds import ATOM, GRAMMAR

PATHS = ("", "/@alice", "/comments", "/p/{post}")
LOCAL = "http://localhost"


@pytest.fixture(params=["everyone", "members"])
def posting_settings(request):
    return {"READING": request.param}


def create_token(client, scope="feed"):
    response = client.post("/tokens", json=TOKEN | {"scope": scope})
    assert response.status_code == 201, response.text
    return response.json["token"]


@pytest.fixture
def token(alice):
    return create_token(alice)


@pytest.fixture
def illustrated(alice):
    """A post with an image, which its text shows and links to."""
    post = alice.create_post("On engines")
    image = alice.add_image(post, alt="A loom")
    path = f"/images/{image['id']}"
    text = f"![x]({path}) [a]({LOCAL}{path}) [b](https://example.com{path}) [c](/about) `{path}`"
    alice.patch(f"/posts/{post['id']}", json={"content": text})
    return post | {"images": [image]}


def urls_of(token, post, image):
    """Return the URLs of all feeds with a token, and of an image."""
    feeds = [
        f"/feeds/{token}{path}/feed.{format}".format(post=post)
        for path in PATHS
        for format in ("atom", "json")
    ]
    return [*feeds, f"/feeds/{token}/images/{image}"]


@pytest.fixture
def urls(token, illustrated):
    return urls_of(token, illustrated["id"], illustrated["images"][0]["id"])


def test_a_feed_reader_without_a_session_reads_feeds_and_images(anonymous, urls):
    for url in urls:
        assert anonymous.get(url).status_code == 200, url
        assert anonymous.head(url).status_code == 200, url


def test_images_are_at_addresses_with_the_token(anonymous, token, illustrated, bob):
    [image] = illustrated["images"]
    url, base = f"{LOCAL}/p/{illustrated['id']}", f"{LOCAL}/feeds/{token}"
    path = f"/images/{image['id']}"
    feed = anonymous.get(f"/feeds/{token}/feed.json").json
    [item] = feed["items"]
    assert feed["feed_url"] == f"{base}/feed.json"
    assert feed["home_page_url"] == f"{LOCAL}/"
    assert (item["id"], item["url"]) == (url, url)
    assert [attached["url"] for attached in item["attachments"]] == [base + path]
    html = item["content_html"]
    assert f'<img src="{base}{path}"' in html
    links = re.findall('<a href="([^"]*)"', html)
    assert links == [base + path, f"https://example.com{path}", f"{LOCAL}/about"]
    assert f"<code>{path}</code>" in html

    xml = anonymous.get(f"/feeds/{token}/feed.atom").data
    atom = etree.fromstring(xml)
    GRAMMAR.assertValid(atom)
    [own] = atom.findall(f"{ATOM}link[@rel='self']")
    assert own.get("href") == f"{base}/feed.atom"
    assert atom.findtext(f"{ATOM}id") == f"{LOCAL}/feed.atom"
    assert atom.findtext(f"{ATOM}entry/{ATOM}content") == html
    [enclosure] = atom.findall(f"{ATOM}entry/{ATOM}link[@rel='enclosure']")
    assert enclosure.get("href") == base + path


def test_feeds_name_themselves(anonymous, token, illustrated):
    for path in PATHS[1:]:
        url = f"/feeds/{token}{path}/feed.json".format(post=illustrated["id"])
        feed = anonymous.get(url).json
        assert feed["feed_url"] == LOCAL + url
        home = "/" if path == "/comments" else path.format(post=illustrated["id"])
        assert feed["home_page_url"] == LOCAL + home


def test_web_apps_of_other_sites_show_the_images(anonymous, urls):
    headers = anonymous.get(urls[-1]).headers
    assert headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert headers["Cache-Control"] == "private, max-age=31536000, immutable"


def test_a_reader_asks_whether_a_feed_has_changed(alice, anonymous, token, illustrated):
    url = f"/feeds/{token}/feed.atom"
    first = anonymous.get(url)
    assert first.headers["Cache-Control"] == "private, no-cache"
    headers = {"If-None-Match": first.headers["ETag"]}
    assert anonymous.get(url, headers=headers).status_code == 304
    alice.patch(f"/posts/{illustrated['id']}", json={"title": "On looms"})
    assert anonymous.get(url, headers=headers).status_code == 200


def test_no_feed_with_a_token_is_in_the_cache_of_the_worker(app, anonymous, bob, urls, token):
    for url in urls:
        for _ in range(2):
            anonymous.get(url)
    assert not any(token in str(key) for key in app.extensions[EXTENSION]._entries)
    other = anonymous.get(f"/feeds/{create_token(bob)}/feed.json").text
    assert token not in other


@pytest.mark.parametrize("path", ["/posts", "/users/me", "/tokens"])
def test_a_token_for_feeds_is_no_bearer_token(anonymous, token, path):
    for _ in range(2):
        anonymous.get(path)
        response = anonymous.get(path, headers={"Authorization": f"Bearer {token}"})
        assert assert_problem(response, 401)["code"] == "invalid_token"


@pytest.mark.parametrize("scope", ["read", "write"])
def test_other_tokens_are_not_accepted_in_the_path(alice, urls, token, scope):
    other = create_token(alice, scope)
    for url in urls:
        response = alice.get(url.replace(token, other))
        assert assert_problem(response, 401)["code"] == "invalid_token"
        assert response.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


def test_an_invalid_token_gets_401_before_any_404_or_422(anonymous, alice):
    for given in ("x", "posting_" + "x" * 43, "%FF", "a%00b"):
        for client in (anonymous, alice):
            for url in urls_of(given, "a" * 21, "short"):
                assert_problem(client.get(url), 401)


def test_a_valid_token_gets_404_and_422(anonymous, token):
    for url in urls_of(token, "a" * 21, "a" * 21)[-3:]:
        assert_problem(anonymous.get(url), 404)
    assert_problem(anonymous.get(f"/feeds/{token}/@unknown/feed.atom"), 404)
    assert_problem(anonymous.get(f"/feeds/{token}/images/short"), 422)


def delete_token(alice, flask):
    [token] = alice.get("/tokens").json
    assert alice.delete(f"/tokens/{token['id']}").status_code == 204


def let_it_expire(alice, flask):
    with alice.application.app_context():
        db.session.execute(sa.update(Token).values(expires_at=now()))
        db.session.commit()


@pytest.mark.parametrize(
    "end", [change_password, suspend, reset_password, delete_account, delete_token, let_it_expire]
)
def test_it_ends_like_other_tokens(alice, anonymous, flask, urls, end):
    for url in urls:
        assert anonymous.get(url).status_code == 200
    end(alice, flask)
    for url in urls:
        assert_problem(anonymous.get(url), 401)


def test_its_use_is_noted(alice, anonymous, token):
    assert alice.get("/tokens").json[0]["last_used_at"] is None
    anonymous.get(f"/feeds/{token}/feed.atom")
    assert alice.get("/tokens").json[0]["last_used_at"]
    assert alice.get("/tokens").json[0]["scope"] == "feed"


def test_the_log_has_the_route_and_no_token(make_app, urls, token, caplog, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("a mistake")

    caplog.set_level(logging.DEBUG)
    app = make_app(PROPAGATE_EXCEPTIONS=False)
    client = app.test_client()
    for url in urls:
        client.get(url)
        client.get(url.replace("feed.", "nothing."))
    assert "route=/feeds/{token}/feed.atom" in caplog.text
    monkeypatch.setattr("posting.pages.feeds.list_posts", fail)
    assert_problem(client.get(f"/feeds/{token}/feed.atom"), 500)
    assert "Exception on /feeds/{token}/feed.atom" in caplog.text
    assert "a mistake" in caplog.text
    assert token not in caplog.text


def test_gunicorn_logs_no_token(monkeypatch):
    monkeypatch.setenv("WEB_CONCURRENCY", "1")  # the configuration sets it: restore it at the end
    hide_tokens = run_path(str(ROOT / "deploy" / "gunicorn.conf.py"))["hide_tokens"]
    for path in ("/feeds/posting_x/feed.atom", "//a/feeds/posting_x?x", "/posts"):
        message = "Error handling request %s %s"
        record = logging.LogRecord("gunicorn", 40, "", 1, message, ("GET", path), None)
        assert hide_tokens(record)
        expected = re.sub("posting_x", "{token}", path)
        assert record.getMessage() == f"Error handling request GET {expected}"


@pytest.mark.posting_settings(PAGES="off")
def test_without_pages_there_are_no_feeds(alice, token):
    assert_problem(alice.get(f"/feeds/{token}/feed.atom"), 404)
