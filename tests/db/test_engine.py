"""What connections are told, which locks a request takes, and which indexes it walks."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
import sqlalchemy as sa

from posting import create_app
from posting.auth import sessions
from posting.db.engine import READER, db, is_in_memory, select, violated_constraint
from posting.db.models import Comment, Image, ImageData, Post, Session, User
from posting.db.types import UtcDateTime, new_id, now
from posting.http import request_body
from tests.conftest import PASSWORD, POSTGRES
from tests.helpers.assertions import problem, sound

on_sqlite = pytest.mark.skipif(bool(POSTGRES), reason="asks SQLite")
on_postgres = pytest.mark.skipif(not POSTGRES, reason="asks Postgres")


def queries(statements):
    return [sql for sql in statements if not sql.startswith(("BEGIN", "PRAGMA"))]


@on_sqlite
def test_sqlite_is_told_what_keeps_data_safe(app):
    expected = {
        "busy_timeout": 5000,
        "journal_mode": "wal",
        "synchronous": 2,  # FULL
        "foreign_keys": 1,
        "journal_size_limit": 67108864,
        "cache_size": -500,
        "mmap_size": 0,
        "trusted_schema": 0,
    }
    with app.app_context(), db.engine.connect() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in expected
        }
        version = connection.exec_driver_sql("SELECT sqlite_version()").scalar_one()
    assert found == expected
    assert tuple(map(int, version.split("."))) >= (3, 51, 3)


@on_postgres
def test_postgres_is_told_not_to_wait_forever(app):
    with app.app_context(), db.engine.connect() as connection:
        for name, value in {
            "statement_timeout": "30s",
            "lock_timeout": "5s",
            "idle_in_transaction_session_timeout": "1min",
        }.items():
            assert connection.exec_driver_sql(f"SHOW {name}").scalar_one() == value


def test_the_pool_is_as_large_as_it_says(app):
    with app.app_context():
        pool = db.engine.pool
    assert (pool.size(), pool._max_overflow, pool._timeout) == (8, 0, 5)
    assert pool._pre_ping == bool(POSTGRES)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///:memory:",
        "sqlite:///file::memory:?uri=true",
        "sqlite:///file:any?mode=memory&cache=shared&uri=true",
    ],
)
def test_each_way_to_say_in_memory_is_known(url):
    app = create_app({"TESTING": True, "DATABASE_URL": url})
    with app.app_context():
        assert is_in_memory()
    assert app.test_client().get("/readyz").status_code == 200


def test_no_connection_is_open_before_workers_fork(make_app):
    app = make_app()
    with app.app_context():
        assert db.engine.pool.checkedin() + db.engine.pool.checkedout() == 0


@on_postgres
def test_a_restart_of_postgres_fails_no_request(app, anonymous):
    assert anonymous.get("/posts").status_code == 200
    with app.app_context():
        engine = sa.create_engine(db.engine.url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert anonymous.get("/posts").status_code == 200


def test_lone_reads_take_the_connections_of_all_others(app):
    with app.app_context():
        for _ in range(2):
            assert select(sa.select(sa.literal(1))) == [(1,)]
            assert app.extensions[READER].pool is db.engine.pool
            db.engine.dispose()  # after which the engine has another pool


@on_postgres
def test_a_column_of_another_type_is_an_error_once_at_most(app, anonymous):
    """Connections have statements prepared for the type of before."""
    alter = "ALTER TABLE posts ALTER COLUMN title TYPE varchar({})"
    try:
        for _ in range(10):
            assert anonymous.get("/posts").status_code == 200
        with app.app_context(), db.engine.begin() as connection:
            connection.exec_driver_sql(alter.format(300))
        statuses = [anonymous.get("/posts").status_code for _ in range(10)]
    finally:
        with app.app_context(), db.engine.begin() as connection:
            connection.exec_driver_sql(alter.format(200))
    assert statuses[1:] == [200] * 9


@on_sqlite
def test_reading_goes_on_beside_a_writer_and_writing_waits(alice, post, impatient):
    """A writer that does not end holds the lock: reads answer, writes are told to come back."""
    with impatient.begin() as writer:
        writer.execute(sa.update(User).values(bio="x"))
        assert alice.get("/posts").status_code == 200
        assert alice.get("/users/me").json["bio"] is None
        answer = alice.post("/posts", json={"title": "a", "content": "b"})
        problem(answer, 503)
        assert answer.headers["Retry-After"] == "1"
    assert alice.patch(f"/posts/{post['id']}", json={"title": "b"}).status_code == 200


@on_sqlite
def test_transactions_begin_as_what_they_will_be(alice, post, statements):
    alice.get("/users/me")
    assert [sql for sql in statements if sql.startswith("BEGIN")] == ["BEGIN"]
    statements.clear()
    alice.patch(f"/posts/{post['id']}", json={"title": "b"})
    assert [sql for sql in statements if sql.startswith("BEGIN")] == ["BEGIN IMMEDIATE"]


class TestNoLockIsHeld:
    @pytest.fixture
    def write_elsewhere(self, app):
        def write():
            with db.engine.begin() as connection:
                connection.execute(sa.update(User).values(bio="written meanwhile"))

        return write

    def test_while_a_password_is_hashed(self, app, alice, write_elsewhere, monkeypatch):
        for name in ("generate_password_hash", "check_password_hash"):
            real = getattr(sessions, name)

            def slow(*arguments, real=real):
                write_elsewhere()
                return real(*arguments)

            monkeypatch.setattr(sessions, name, slow)
        credentials = {"username": "alice", "password": PASSWORD}
        assert app.test_client().post("/signin", json=credentials).status_code == 200
        change = {"password": "another walk by the sea", "current_password": PASSWORD}
        assert alice.patch(f"/users/{alice.user['id']}", json=change).status_code == 200
        assert alice.get("/users/me").json["bio"] == "written meanwhile"

    @pytest.fixture
    def meanwhile(self, monkeypatch):
        """Do something while a body arrives."""

        def meanwhile(act):
            def slow(data):
                act()
                return parse(data)

            parse = request_body.parse
            monkeypatch.setattr(request_body, "parse", slow)

        return meanwhile

    def test_while_a_body_arrives(self, alice, post, write_elsewhere, meanwhile):
        meanwhile(write_elsewhere)
        assert alice.patch(f"/posts/{post['id']}", json={"title": "b"}).status_code == 200

    def test_nor_if_it_could_not_be_noted_who_was_seen(
        self, alice, post, write_elsewhere, meanwhile, impatient
    ):
        with impatient.connect() as writer:
            writer.execute(sa.update(Session).values(last_seen_at=now() - timedelta(hours=2)))
            writer.commit()
            writer.execute(sa.update(Session).values(user_agent="locked"))
            meanwhile(lambda: (writer.rollback(), write_elsewhere()))
            assert alice.patch(f"/posts/{post['id']}", json={"title": "b"}).status_code == 200


def test_moments_come_back_as_they_went(app):
    kind, sample = UtcDateTime(), datetime(2026, 11, 21, 9, 30, 0, 125000, UTC)
    elsewhere = sample.astimezone(timezone(timedelta(hours=-8)))
    with app.app_context():
        for moment in (sample, elsewhere):
            found = db.session.scalar(sa.select(sa.literal(moment, kind)))
            assert found == sample
            assert found.tzinfo is UTC
    assert now().microsecond % 1000 == 0


@pytest.mark.parametrize(
    "row",
    [
        User(username="ab", password_hash="x"),
        User(username="x" * 33, password_hash="x"),
        User(username="abc", password_hash="x", bio="x" * 501),
        User(username="abc", password_hash="x", display_name="x" * 65),
        User(username="abc", password_hash="x", role="king"),
        Post(title="", content="x"),
        Post(title="x" * 201, content="x"),
        Post(title="x", content=""),
        Post(title="x", content="x" * 100_001),
        Post(title="x", content="x", comment_count=-1),
        Post(title="x", content="x", author_id="a" * 21),
        Session(user_id="a" * 21, token_hash="x", user_agent=""),
        Comment(post_id="p" * 21, content=""),
        Comment(post_id="p" * 21, content="x" * 10_001),
        Comment(post_id="a" * 21, content="x"),
        Comment(post_id="p" * 21, content="x", parent_id="a" * 21),
        Comment(post_id="p" * 21, content="x", author_id="a" * 21),
        Image(post_id="a" * 21, media_type="image/png", width=1, height=1, size=1),
        Image(post_id="p" * 21, media_type="image/svg+xml", width=1, height=1, size=1),
        Image(post_id="p" * 21, media_type="image/png", width=0, height=1, size=1),
        Image(post_id="p" * 21, media_type="image/png", width=1, height=1, size=1, alt="x" * 501),
        ImageData(image_id="a" * 21, data=b"x"),
    ],
    ids=range(22),
)
def test_both_databases_refuse_what_breaks_a_rule(app, row):
    with app.app_context():
        db.session.add(Post(id="p" * 21, title="x", content="x"))
        db.session.commit()
        db.session.merge(row)
        with pytest.raises((sa.exc.IntegrityError, sa.exc.DataError)):
            db.session.flush()


def test_the_constraint_that_a_name_breaks_is_told(app, alice):
    with app.app_context():
        db.session.add(User(username="ALICE", password_hash="x"))
        with pytest.raises(sa.exc.IntegrityError) as error:
            db.session.flush()
        assert violated_constraint(error.value) == "uq_users_username"
        db.session.rollback()
        db.session.add(Post(title="x", content="x", author_id="a" * 21))
        with pytest.raises(sa.exc.IntegrityError) as error:
            db.session.flush()
        assert violated_constraint(error.value) == ""


class TestQueries:
    @pytest.fixture(autouse=True)
    def _many_rows(self, app, alice):
        """Enough rows that an index is worth it, in the planner's eyes too."""
        with app.app_context():
            authors = [alice.user["id"], *(new_id() for _ in range(99))]
            people = [
                {"id": author, "username": f"user-{number}", "password_hash": "x"}
                for number, author in enumerate(authors)
            ]
            db.session.execute(sa.insert(User), people[1:])
            db.session.execute(
                sa.insert(Post),
                [
                    {
                        "id": new_id(),
                        "author_id": authors[number % 100],
                        "title": "x",
                        "content": "x",
                        "version": 1,
                        "created_at": now() + timedelta(milliseconds=number),
                    }
                    for number in range(2000)
                ],
            )
            posts = list(db.session.scalars(sa.select(Post.id).limit(40)))
            talk = [
                {
                    "id": new_id(),
                    "post_id": posts[number % 40],
                    "parent_id": None,
                    "author_id": authors[number % 100],
                    "content": "x",
                    "version": 1,
                    "created_at": now() + timedelta(milliseconds=number),
                }
                for number in range(4000)
            ]
            for number, row in enumerate(talk):
                row["parent_id"] = talk[number % 40]["id"] if number >= 40 else None
            db.session.execute(sa.insert(Comment), talk)
            db.session.execute(sa.update(Post).where(Post.id.in_(posts)).values(comment_count=100))
            db.session.commit()
            if POSTGRES:
                db.session.execute(sa.text("ANALYZE"))
                db.session.commit()

    @pytest.fixture
    def plan(self, statements):
        """Return how the database would run the queries of a request, as text."""

        def plan(client, url, method="GET"):
            seen = []

            def explain(connection, cursor, statement, parameters, *_):
                if statement.startswith(("SELECT", "UPDATE", "DELETE", "WITH")):
                    prefix = "EXPLAIN " if POSTGRES else "EXPLAIN QUERY PLAN "
                    inner = connection.connection.cursor()
                    if POSTGRES:  # whose planner reads small tables whole even if it need not
                        inner.execute("SET enable_seqscan = off")
                    inner.execute(prefix + statement, parameters)
                    seen.append("\n".join(str(row) for row in inner.fetchall()))
                    if POSTGRES:
                        inner.execute("RESET enable_seqscan")

            sa.event.listen(sa.Engine, "before_cursor_execute", explain)
            try:
                assert client.open(url, method=method).status_code in {200, 204}
            finally:
                sa.event.remove(sa.Engine, "before_cursor_execute", explain)
            return "\n".join(seen)

        return plan

    def lists(self, anonymous, alice):
        for url in ("/posts?limit=5", f"/posts?limit=5&author={alice.user['id']}"):
            yield url
            link = anonymous.get(url).headers["Link"]
            yield re.search("<(.*)>", link)[1]

    @pytest.fixture
    def commented(self, app):
        with app.app_context():
            return db.session.scalars(sa.select(Comment).order_by(Comment.created_at)).first()

    def no_table_is_read_whole(self, text):
        assert not re.search(r"Seq Scan on (posts|comments|images|users)", text), text
        assert not re.search(r"SCAN (posts|comments|images|users)(?! USING INDEX)", text), text

    def test_comments_walk_an_index(self, plan, anonymous, commented):
        first = f"/posts/{commented.post_id}/comments?limit=5"
        link = anonymous.get(first).headers["Link"]
        for url in (first, re.search("<(.*)>", link)[1]):
            text = plan(anonymous, url)
            assert "ix_comments_post_id_created_at_id" in text, text
            assert "Sort" not in text, text
            assert "TEMP B-TREE" not in text, text
            self.no_table_is_read_whole(text)

    def test_deleting_reads_no_table_whole(self, plan, app, alice, moderator, commented):
        self.no_table_is_read_whole(plan(moderator, f"/comments/{commented.id}", "DELETE"))
        self.no_table_is_read_whole(plan(moderator, f"/posts/{commented.post_id}", "DELETE"))
        url = f"/users/{alice.user['id']}?content=delete"
        deleted = plan(alice, url, "DELETE")
        self.no_table_is_read_whole(deleted)
        assert "SubPlan" not in deleted  # which Postgres runs for each row, once they are many
        with app.app_context(), db.engine.connect() as connection:
            sound(connection)

    def test_lists_walk_an_index(self, plan, anonymous, alice):
        for url in self.lists(anonymous, alice):
            text = plan(anonymous, url)
            index = "author_id_created_at_id" if "author=" in url else "ix_posts_created_at_id"
            assert index in text, text
            assert "Sort" not in text, text
            assert "TEMP B-TREE" not in text, text
            assert "Seq Scan on posts" not in text, text
            assert not re.search(r"SCAN posts(?! USING INDEX)", text), text

    def test_lists_read_no_content(self, anonymous, alice, statements):
        for url in self.lists(anonymous, alice):
            statements.clear()
            anonymous.get(url)
            [statement] = queries(statements)
            assert "content" not in statement
            assert "count(" not in statement.lower()

    @pytest.mark.parametrize(
        ("url", "anonymous_queries", "signed_in_queries"),
        [
            ("/posts", 1, 1),
            ("/posts/{post}", 1, 1),
            ("/posts/{illustrated}", 2, 2),
            ("/posts/{post}/comments", 2, 2),
            ("/posts/{illustrated}/comments", 1, 1),
            ("/comments/{comment}", 1, 1),
            ("/images/{image}", 1, 1),
            ("/users/me", 0, 2),
            ("/sessions", 0, 2),
            ("/openapi.json", 0, 0),
        ],
    )
    def test_no_query_is_made_in_vain(
        self, request, statements, url, anonymous_queries, signed_in_queries
    ):
        post, anonymous, alice = map(request.getfixturevalue, ("post", "anonymous", "alice"))
        illustrated = alice.post_titled("With all")
        comment = alice.comment_on(illustrated, "A comment")
        named = {"post": post, "illustrated": illustrated, "comment": comment}
        named["image"] = alice.illustrate(illustrated)
        url = url.format(**{name: record["id"] for name, record in named.items()})
        for client, count in ((anonymous, anonymous_queries), (alice, signed_in_queries)):
            statements.clear()
            client.get(url)
            assert len(queries(statements)) == count, statements
            assert ("image_data" in " ".join(statements)) == url.startswith("/images")

    def test_who_asks_is_found_by_index(self, plan, alice):
        text = plan(alice, "/users/me")
        if not POSTGRES:  # with so few sessions Postgres rightly reads them all
            assert "sqlite_autoindex_sessions" in text
            assert "SCAN" not in text
