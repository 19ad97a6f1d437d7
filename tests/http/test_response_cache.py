"""Answers that are kept until something is committed: the same as others, and never older."""

import json
import logging

import pytest
import sqlalchemy as sa

from posting import create_app, logs
from posting.db import queries
from posting.db.engine import db, fetch_one
from posting.db.models import Post
from posting.http import response_cache
from posting.http.response_cache import EXTENSION, CommitWatch
from tests.conftest import POSTGRES

pytestmark = pytest.mark.skipif(bool(POSTGRES), reason="Postgres is asked each time")


@pytest.fixture
def asked(app, monkeypatch):
    """The paths for which the app was asked since the list was last cleared."""
    paths = []
    cache = app.extensions[EXTENSION]
    answer = cache._answer

    def note(environ, start_response):
        paths.append(environ["PATH_INFO"])
        return answer(environ, start_response)

    monkeypatch.setattr(cache, "_answer", note)
    return paths


def commit(app, title):
    """Write past the service, as another process would."""
    with app.app_context(), db.engine.begin() as connection:
        connection.execute(sa.update(Post).values(title=title))


def told(answer):
    return {name: value for name, value in answer.headers if name != "X-Request-ID"}


@pytest.mark.parametrize(
    "path", ["/posts", "/posts/{id}", "/posts/{id}/comments", "/posts?limit=1", "/openapi.json"]
)
def test_the_second_answer_is_the_first(anonymous, asked, post, path):
    url = path.format(id=post["id"])
    first = anonymous.get(url)
    asked.clear()
    second = anonymous.get(url)
    assert asked == []
    assert second.status == first.status == "200 OK"
    assert second.data == first.data
    assert told(second) == told(first)
    assert second.headers["X-Request-ID"] != first.headers["X-Request-ID"]
    named = anonymous.get(url, headers={"X-Request-ID": "find-me"})
    assert named.headers["X-Request-ID"] == "find-me"


def test_a_commit_of_anybody_ends_it(app, anonymous, asked, post):
    url = f"/posts/{post['id']}"
    asked.clear()
    for number in range(3):
        commit(app, f"Title {number}")
        for _ in range(3):
            assert anonymous.get(url).json["title"] == f"Title {number}"
        assert asked == [url]
        asked.clear()


def test_what_a_commit_overtakes_is_not_shown_again(app, anonymous, post, monkeypatch):
    """Whoever asks after the commit is shown what it wrote."""
    url = f"/posts/{post['id']}"

    def overtaken(*arguments, **values):
        row = fetch_one(*arguments, **values)
        commit(app, "New")
        monkeypatch.undo()
        return row

    monkeypatch.setattr(queries, "fetch_one", overtaken)
    assert anonymous.get(url).json["title"] == post["title"]
    assert anonymous.get(url).json["title"] == "New"


@pytest.mark.parametrize("form", ['"{}"', 'W/"{}"', '"{}-gzip"', '"other", "{}"', "*"])
def test_who_has_it_is_told_so(anonymous, asked, post, form):
    first = anonymous.get("/posts")
    asked.clear()
    headers = {"If-None-Match": form.format(first.headers["ETag"].strip('"'))}
    answer = anonymous.get("/posts", headers=headers)
    assert asked == []
    assert answer.status_code == 304
    assert answer.data == b""
    assert "Content-Type" not in answer.headers
    assert answer.headers["ETag"] == first.headers["ETag"]
    assert anonymous.get("/posts", headers={"If-None-Match": '"other"'}).status_code == 200


def test_who_asks_first_and_has_it_is_told_so_too(anonymous, asked, post):
    tag = anonymous.get("/posts").headers["ETag"]
    anonymous.application.extensions[EXTENSION]._kept.clear()
    for _ in range(2):
        asked.clear()
        assert anonymous.get("/posts", headers={"If-None-Match": tag}).status_code == 304
    assert asked == []


def test_only_what_is_public_is_kept(anonymous, alice, asked, post):
    paths = ["/users/me", "/sessions", "/healthz", "/readyz", "/posts/none", "/nothing"]
    for path in paths:
        alice.get(path)
    asked.clear()
    for path in paths:
        alice.get(path)
        anonymous.get(path)
    assert asked == [path for path in paths for _ in range(2)]
    assert anonymous.head("/posts").status_code == 200
    assert asked[-1] == "/posts"
    assert alice.post("/posts").status_code != 200


def test_each_host_has_its_own(anonymous, alice):
    for number in range(3):
        alice.post_titled(f"Post {number}")
    links = {
        host: {
            anonymous.get("/posts?limit=1", headers={"Host": host}).headers["Link"]
            for _ in range(2)
        }
        for host in ("one.example", "two.example")
    }
    assert all(len(found) == 1 and host in str(found) for host, found in links.items())


def test_it_takes_no_more_room_than_it_may(app, anonymous, alice, monkeypatch):
    posts = [alice.post_titled(f"Post {n}", content="x" * 10_000) for n in range(10)]
    monkeypatch.setattr(response_cache, "MOST_BYTES", 50_000)
    for post in posts:
        anonymous.get(f"/posts/{post['id']}")
    cache = app.extensions[EXTENSION]
    kept = [key[3] for key in cache._kept]
    assert kept == [f"/posts/{post['id']}" for post in posts[-3:]]
    assert cache._bytes == sum(len(k.body) + response_cache.OVERHEAD for k in cache._kept.values())
    monkeypatch.setattr(response_cache, "LARGEST", 1000)
    cache._kept.clear()
    anonymous.get(f"/posts/{posts[0]['id']}")
    assert cache._kept == {}


def test_requests_are_told_as_others_are(make_app, post, caplog, monkeypatch):
    client = make_app(METRICS="on").test_client()
    url = f"/posts/{post['id']}"
    client.get(url)
    caplog.set_level(logging.INFO, "posting")
    monkeypatch.setattr(caplog.handler, "formatter", logs.JsonFormatter())
    caplog.clear()
    client.get(url, headers={"X-Request-ID": "find-me", "If-None-Match": "*"})
    [line] = map(json.loads, caplog.text.splitlines())
    assert (line["route"], line["status"], line["request_id"]) == ("/posts/{id}", 304, "find-me")
    figure = 'posting_requests_total{method="GET",route="/posts/{id}",status="304"}'
    assert figure in client.get("/metrics").text


def test_a_file_that_cannot_be_asked_keeps_nothing(anonymous, asked, post, monkeypatch):
    monkeypatch.setattr(CommitWatch, "version", lambda _: None)
    asked.clear()
    for _ in range(2):
        assert anonymous.get("/posts").status_code == 200
    assert asked == ["/posts"] * 2


def test_a_database_that_is_gone_is_no_error(tmp_path):
    assert CommitWatch(tmp_path / "nowhere" / "posting.db").version() is None


def test_it_can_be_switched_off(make_app):
    assert EXTENSION in make_app().extensions
    assert EXTENSION not in make_app(RESPONSE_CACHE="off").extensions
    in_memory = create_app({"TESTING": True, "DATABASE_URL": "sqlite://"})
    assert EXTENSION not in in_memory.extensions
