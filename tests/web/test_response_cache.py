"""The response cache: cached responses equal fresh ones, and are never older than a commit."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest
import sqlalchemy as sa

from posting import create_app
from posting.db.commits import CommitWatch
from posting.db.transactions import fetch_one, transaction
from posting.posts.models import Post
from posting.web import logs, response_cache
from posting.web.response_cache import EXTENSION
from tests.conftest import POSTGRES


@pytest.fixture(autouse=POSTGRES != "")
def own_commits(monkeypatch):
    """Ignore the commits of other tests, which are to the same server."""
    commits = []
    append = commits.append
    sa.event.listen(sa.Engine, "commit", append)
    monkeypatch.setattr(CommitWatch, "version", lambda _: (append, len(commits)))
    yield
    sa.event.remove(sa.Engine, "commit", append)


@pytest.fixture
def misses(app, monkeypatch):
    """The paths of requests that reached the app since the list was last cleared."""
    paths = []
    cache = app.extensions[EXTENSION]
    wsgi_app = cache._app

    def record(environ, start_response):
        paths.append(environ["PATH_INFO"])
        return wsgi_app(environ, start_response)

    monkeypatch.setattr(cache, "_app", record)
    return paths


def commit(app, title):
    """Commit on another connection, as another process would."""
    with app.app_context(), transaction() as connection:
        connection.execute(sa.update(Post).values(title=title))


def headers_of(response):
    return {name: value for name, value in response.headers if name != "X-Request-ID"}


@pytest.mark.parametrize(
    "path", ["/posts", "/posts/{id}", "/posts/{id}/comments", "/posts?limit=1", "/openapi.json"]
)
def test_a_cached_response_equals_the_first(anonymous, misses, post, path):
    url = path.format(id=post["id"])
    first = anonymous.get(url)
    misses.clear()
    second = anonymous.get(url)
    assert misses == []
    assert second.status == first.status == "200 OK"
    assert second.data == first.data
    assert headers_of(second) == headers_of(first)
    assert second.headers["X-Request-ID"] != first.headers["X-Request-ID"]
    named = anonymous.get(url, headers={"X-Request-ID": "find-me"})
    assert named.headers["X-Request-ID"] == "find-me"


def test_a_commit_invalidates_the_cache(app, anonymous, misses, post):
    url = f"/posts/{post['id']}"
    misses.clear()
    for number in range(3):
        commit(app, f"Title {number}")
        for _ in range(3):
            assert anonymous.get(url).json["title"] == f"Title {number}"
        assert misses == [url]
        misses.clear()


def test_a_response_that_is_older_than_a_commit_is_not_stored(app, anonymous, post, monkeypatch):
    """A request after the commit sees what it wrote."""
    url = f"/posts/{post['id']}"

    def overtaken(*arguments, **values):
        row = fetch_one(*arguments, **values)
        commit(app, "New")
        monkeypatch.undo()
        return row

    monkeypatch.setattr("posting.posts.store.fetch_one", overtaken)
    assert anonymous.get(url).json["title"] == post["title"]
    assert anonymous.get(url).json["title"] == "New"


@pytest.mark.parametrize("form", ['"{}"', 'W/"{}"', '"{}-gzip"', '"other", "{}"', "*"])
def test_a_matching_if_none_match_gets_304(anonymous, misses, post, form):
    first = anonymous.get("/posts")
    misses.clear()
    headers = {"If-None-Match": form.format(first.headers["ETag"].strip('"'))}
    response = anonymous.get("/posts", headers=headers)
    assert misses == []
    assert response.status_code == 304
    assert response.data == b""
    assert "Content-Type" not in response.headers
    assert response.headers["ETag"] == first.headers["ETag"]
    assert anonymous.get("/posts", headers={"If-None-Match": '"other"'}).status_code == 200


def test_the_response_behind_a_304_is_cached(anonymous, misses, post):
    tag = anonymous.get("/posts").headers["ETag"]
    anonymous.application.extensions[EXTENSION]._entries.clear()
    for _ in range(2):
        misses.clear()
        assert anonymous.get("/posts", headers={"If-None-Match": tag}).status_code == 304
    assert misses == []


def test_only_public_responses_are_cached(anonymous, alice, misses, post):
    paths = ["/users/me", "/sessions", "/healthz", "/readyz", "/posts/none", "/nothing"]
    for path in paths:
        alice.get(path)
    misses.clear()
    for path in paths:
        alice.get(path)
        anonymous.get(path)
    assert misses == [path for path in paths for _ in range(2)]
    assert anonymous.head("/posts").status_code == 200
    assert misses[-1] == "/posts"
    assert alice.post("/posts").status_code != 200


def test_only_responses_that_check_no_token_are_replayed_with_one(anonymous, writer, misses, post):
    paths = ["/posts", "/", "/feed.atom", "/openapi.json"]
    for client in (anonymous, writer):
        for path in paths:
            client.get(path)
        misses.clear()
        for path in paths:
            assert client.get(path).status_code == 200
        assert misses == (["/posts"] if client is writer else [])
    assert anonymous.get("/posts").status_code == 200
    assert misses == ["/posts"]  # of the writer


def test_a_response_to_a_program_is_stored_for_everyone(anonymous, writer, misses, post):
    for _ in range(2):  # the first request writes when the token was last used
        writer.get("/posts")
    misses.clear()
    [listed] = anonymous.get("/posts").json
    assert (listed["id"], misses) == (post["id"], [])


def test_each_host_has_entries_of_its_own(anonymous, alice):
    for number in range(3):
        alice.create_post(f"Post {number}")
    links = {
        host: {
            anonymous.get("/posts?limit=1", headers={"Host": host}).headers["Link"]
            for _ in range(2)
        }
        for host in ("one.example", "two.example")
    }
    assert all(len(found) == 1 and host in str(found) for host, found in links.items())


@pytest.mark.parametrize("path", ["/", "/p/{id}", "/@alice", "/feed.atom", "/write", "/search"])
def test_names_that_a_page_does_not_know_make_no_further_entries(
    app, anonymous, misses, post, path
):
    path = path.format(id=post["id"])
    first = anonymous.get(f"{path}?x=0")
    misses.clear()
    for query in ("", "?", "?x=1", "?x=1&x=2", "?%78", "?x=1&y=%ff&", "?=", "?&&x"):
        response = anonymous.get(path + query)
        assert (response.status_code, response.data) == (200, first.data)
    assert misses == []
    assert len(app.extensions[EXTENSION]._entries) == 1


def test_names_that_a_page_knows_are_part_of_its_entry(anonymous, alice, misses):
    for number in range(3):
        alice.create_post(f"Post {number}")
    for query in (
        "?sort=new",
        "?sort=active",
        "?%73ort=active",
        "?x=1&sort=active",
        "?sort=acti%76e",
    ):
        html = anonymous.get(f"/{query}").text
        assert anonymous.get(f"/{query}").text == html
        assert html == anonymous.get(f"/?sort={'new' if 'new' in query else 'active'}").text
    assert "<mark>2</mark>" in anonymous.get("/search?q=2").text
    assert "<mark>2</mark>" not in anonymous.get("/search?x=2&q=1").text
    assert anonymous.get("/?sort=new&sort=active").status_code == 422
    assert anonymous.get("/?x=1&sort=old").status_code == 422


def test_names_that_the_api_does_not_know_are_refused_with_a_cached_response(anonymous, post):
    for path in ("/posts", f"/posts/{post['id']}", "/openapi.json"):
        for _ in range(2):
            assert anonymous.get(path).status_code == 200
            assert anonymous.get(f"{path}?x=1").status_code == 422


def test_the_number_of_pages_whose_names_are_kept_is_limited(app, anonymous, post, monkeypatch):
    monkeypatch.setattr(response_cache, "MAX_PAGES", 2)
    known = app.extensions[EXTENSION]._known_names
    known.clear()
    for path in ("/", "/write", "/signin", "/feed.atom", "/feed.json"):
        anonymous.get(f"{path}?x")
        assert path in {url[3] for url in known}
        assert len(known) <= 2


def test_the_size_of_the_cache_is_limited(app, anonymous, alice, monkeypatch):
    posts = [alice.create_post(f"Post {n}", content="x" * 10_000) for n in range(10)]
    monkeypatch.setattr(response_cache, "MAX_BYTES", 50_000)
    for post in posts:
        anonymous.get(f"/posts/{post['id']}")
    cache = app.extensions[EXTENSION]
    cached = [key[3] for key in cache._entries]
    assert cached == [f"/posts/{post['id']}" for post in posts[-3:]]
    assert cache._bytes == sum(
        len(entry.body) + response_cache.OVERHEAD for entry in cache._entries.values()
    )
    monkeypatch.setattr(response_cache, "MAX_BODY", 1000)
    cache._entries.clear()
    anonymous.get(f"/posts/{posts[0]['id']}")
    assert cache._entries == {}


def test_cached_responses_are_logged_and_counted(make_app, post, caplog, monkeypatch):
    client = make_app(METRICS="on").test_client()
    url = f"/posts/{post['id']}"
    client.get(url)
    caplog.set_level(logging.INFO, "posting")
    monkeypatch.setattr(caplog.handler, "formatter", logs.JsonFormatter())
    caplog.clear()
    client.get(url, headers={"X-Request-ID": "find-me", "If-None-Match": "*"})
    [line] = map(json.loads, caplog.text.splitlines())
    assert (line["route"], line["status"], line["request_id"]) == ("/posts/{id}", 304, "find-me")
    metric = 'posting_requests_total{method="GET",route="/posts/{id}",status="304"}'
    assert metric in client.get("/metrics").text


def test_without_a_version_nothing_is_cached(anonymous, misses, post, monkeypatch):
    monkeypatch.setattr(CommitWatch, "version", lambda _: None)
    misses.clear()
    for _ in range(2):
        assert anonymous.get("/posts").status_code == 200
    assert misses == ["/posts"] * 2


def test_a_database_that_does_not_answer_holds_up_one_request(app, anonymous, monkeypatch):
    asked, answered = Event(), Event()

    def hang(_):
        asked.set()
        assert answered.wait(20)

    with monkeypatch.context() as hanging, ThreadPoolExecutor() as pool:
        hanging.setattr(CommitWatch, "version", hang)
        first = pool.submit(app.test_client().get, "/healthz")
        assert asked.wait(20)
        assert anonymous.get("/healthz").status_code == 200
        assert not first.done()
        answered.set()
        assert first.result().status_code == 200


def test_the_cache_can_be_disabled(make_app):
    assert EXTENSION in make_app().extensions
    assert EXTENSION not in make_app(RESPONSE_CACHE="off").extensions
    in_memory = create_app({"TESTING": True, "DATABASE_URL": "sqlite://"})
    assert EXTENSION not in in_memory.extensions


@contextmanager
def sent_statements():
    """Yield the list of the SQL statements that are sent meanwhile."""
    sent = []

    def append(_connection, _cursor, statement, *_):
        sent.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", append)
    yield sent
    sa.event.remove(sa.Engine, "before_cursor_execute", append)


@pytest.mark.posting_settings(READING="members")
class TestMembersOnly:
    """Members get cached responses, once the database has said who asks."""

    @pytest.fixture
    def members(self, alice, bob, reader, post, misses):
        """Clients for which `/posts` is cached."""
        members = alice, bob, reader
        for _ in range(2):  # the first request of a token writes when it was used
            for member in members:
                assert member.get("/posts").status_code == 200
        misses.clear()
        return members

    def test_all_members_get_the_cached_response_after_one_select(self, members, misses):
        bodies = set()
        for member in members:
            with sent_statements() as statements:
                bodies.add(member.get("/posts").data)
            assert len(statements) == 1
        assert len(bodies) == 1
        assert misses == []

    @pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer x"}])
    def test_the_time_for_a_visitor_does_not_tell_what_is_cached(self, members, anonymous, headers):
        anonymous.set_cookie("session", "x")
        found = []
        for path in ("/posts", "/posts?limit=7"):
            with sent_statements() as statements:
                assert anonymous.get(path, headers=headers).status_code == 401
            found.append(statements)
        assert len(found[0]) == 1
        assert found[0] == found[1]

    def test_an_ended_session_is_refused_at_once(self, members, alice):
        copy = alice.copy()
        assert copy.get("/posts").status_code == 200
        alice.post("/signout")
        members[1].get("/posts")  # now it is cached again
        assert copy.get("/posts").status_code == 401

    def test_a_suspended_member_is_refused_at_once(self, members, flask):
        alice, bob, reader = members
        assert flask("users", "suspend", "alice")[0] == 0
        bob.get("/posts")
        for client in (alice, reader):
            assert client.get("/posts").status_code == 401

    def test_a_deleted_token_is_refused_at_once(self, members):
        alice, bob, reader = members
        [token] = alice.get("/tokens").json
        alice.delete(f"/tokens/{token['id']}")
        bob.get("/posts")
        assert reader.get("/posts").json["code"] == "invalid_token"

    def test_a_cached_response_is_logged_with_its_reader(self, members, misses, caplog):
        caplog.set_level(logging.INFO, "posting")
        caplog.clear()
        members[0].get("/posts")
        assert misses == []
        assert "route=/posts status=200" in caplog.text
        assert f"user={members[0].user['id']}" in caplog.text

    def test_a_database_that_does_not_say_who_asks_gets_503(self, members, misses, monkeypatch):
        def fail(*_, **__):
            raise sa.exc.OperationalError("SELECT 1", {}, Exception("it is locked"))

        monkeypatch.setattr("posting.accounts.sessions.fetch_one", fail)
        assert members[0].get("/posts").status_code == 503
        assert misses == ["/posts"]

    def test_what_everyone_may_read_is_cached_without_a_look_at_who_asks(self, members, misses):
        members[0].get("/openapi.json")
        misses.clear()
        with sent_statements() as statements:
            assert members[0].get("/openapi.json").status_code == 200
        assert (statements, misses) == ([], [])
