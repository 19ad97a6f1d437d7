"""The list of changes: each change once, in the order of the commits, and when a cursor expires."""

import shlex
import shutil
import subprocess
from contextlib import suppress
from datetime import timedelta
from unittest.mock import patch

import pytest
import sqlalchemy as sa

from posting import testbed
from posting.accounts.models import User
from posting.changes import store
from posting.changes.models import LIFETIME, Change
from posting.comments import deletion as comment_deletion
from posting.db.base import db
from posting.db.epoch import Epoch, current_epoch, renew_epoch
from posting.db.transactions import fetch_all, fetch_value, transaction, unit_of_work
from posting.db.types import now
from posting.ops.backup import PG_RESTORE
from posting.posts import deletion as post_deletion
from tests.conftest import PASSWORD, POSTGRES, apply
from tests.helpers.assertions import assert_problem
from tests.helpers.changes import cursor_of_now, wait_for_others
from tests.helpers.clock import shifted_clock


def follow(client, cursor, *, wait=True, **query):
    if wait:
        wait_for_others(client)
    response = client.get("/changes", query_string={"after": cursor, **query})
    assert response.status_code == 200, response.text
    return response.json["changes"], response.json["cursor"]


def short(changes):
    return [(change["kind"], change["id"], change["change"]) for change in changes]


@pytest.fixture
def changed(anonymous):
    """A function that returns what has changed since the last call, or the beginning."""
    cursor = cursor_of_now(anonymous)

    def changed(**options):
        nonlocal cursor
        changes, cursor = follow(anonymous, cursor, limit=100, **options)
        return short(changes)

    return changed


def test_writes_are_changes_in_their_order(anonymous, alice, changed):
    post = alice.create_post("On engines")
    comment = alice.add_comment(post, "And cloth?")
    image = alice.add_image(post)
    alice.patch(f"/posts/{post['id']}", json={"title": "On looms"})
    alice.patch(f"/comments/{comment['id']}", json={"content": "And wool?"})
    alice.patch(f"/images/{image['id']}", json={"alt": "A loom"})
    alice.delete(f"/comments/{comment['id']}")
    alice.delete(f"/images/{image['id']}")
    alice.delete(f"/posts/{post['id']}")
    assert changed() == [
        ("post", post["id"], "created"),
        ("comment", comment["id"], "created"),
        ("image", image["id"], "created"),
        ("post", post["id"], "edited"),
        ("comment", comment["id"], "edited"),
        ("image", image["id"], "edited"),
        ("comment", comment["id"], "deleted"),
        ("image", image["id"], "deleted"),
        ("post", post["id"], "deleted"),
    ]
    assert changed() == []


def test_a_change_names_its_post_and_its_time(anonymous, alice):
    cursor, before = cursor_of_now(anonymous), now()
    post = alice.create_post("On engines")
    comment = alice.add_comment(post, "And cloth?")
    [of_post, of_comment], _ = follow(anonymous, cursor)
    assert of_post.keys() == of_comment.keys() == {"kind", "id", "post_id", "change", "at"}
    assert of_post["id"] == of_post["post_id"] == of_comment["post_id"] == post["id"]
    assert of_comment["id"] == comment["id"]
    assert before.isoformat()[:10] <= of_post["at"] <= of_comment["at"]


def test_an_edit_that_changes_nothing_is_no_change(alice, changed):
    post = alice.create_post("On engines")
    image = alice.add_image(post, alt="A loom")
    changed()
    assert alice.patch(f"/posts/{post['id']}", json={"title": "On engines"}).status_code == 200
    assert alice.patch(f"/images/{image['id']}", json={"alt": "A loom"}).status_code == 200
    assert changed() == []


def test_a_write_that_fails_is_no_change(alice, bob, changed):
    post = alice.create_post("On engines")
    changed()
    assert bob.patch(f"/posts/{post['id']}", json={"title": "x"}).status_code == 403
    assert bob.post("/posts", json={"title": ""}).status_code == 422
    assert changed() == []


def test_a_placeholder_is_edited_and_deleted_with_its_last_reply(alice, changed):
    post = alice.create_post("On engines")
    comment = alice.add_comment(post, "And cloth?")
    reply = alice.add_comment(post, "Cloth too.", parent_id=comment["id"])
    changed()
    alice.delete(f"/comments/{comment['id']}")
    assert changed() == [("comment", comment["id"], "edited")]
    alice.delete(f"/comments/{reply['id']}")
    assert sorted(changed()) == sorted(
        [("comment", reply["id"], "deleted"), ("comment", comment["id"], "deleted")]
    )


def test_a_deleted_post_takes_its_parts_along(alice, bob, changed):
    post, other = alice.create_post("On engines"), alice.create_post("On looms")
    comment, image = bob.add_comment(post, "And cloth?"), alice.add_image(post)
    bob.add_comment(other, "And wool?")
    changed()
    alice.delete(f"/posts/{post['id']}")
    assert sorted(changed()) == [
        ("comment", comment["id"], "deleted"),
        ("image", image["id"], "deleted"),
        ("post", post["id"], "deleted"),
    ]


@pytest.mark.parametrize(
    "body", [{"display_name": "Al"}, {"username": "alina"}, {"bio": "I weave."}]
)
def test_an_account_is_edited(anonymous, alice, body):
    cursor, id = cursor_of_now(anonymous), alice.user["id"]
    for _ in range(2):
        assert alice.patch("/users/me", json=body).status_code == 200
    [change], _ = follow(anonymous, cursor)
    del change["at"]
    assert change == {"kind": "user", "id": id, "post_id": None, "change": "edited"}


def test_a_role_is_part_of_an_account(alice, flask, changed):
    for command in ("promote", "promote", "demote"):
        assert flask("users", command, "alice")[0] == 0
        expected = [("user", alice.user["id"], "edited")]
        assert changed() in (expected, [])
    assert alice.get("/users/me").json["role"] == "member"


def test_what_others_do_not_see_of_an_account_is_no_change(app, alice, moderator, flask, changed):
    password = {"password": "another walk by the sea", "current_password": PASSWORD}
    assert alice.patch("/users/me", json=password).status_code == 200
    url = f"/users/{alice.user['id']}/suspension"
    assert moderator.put(url, json={"reason": "x"}).status_code == 200
    assert moderator.delete(url).status_code == 204
    for act in ("refused by a moderator", "deleted by a command"):
        id = apply(app)
        if act.startswith("refused"):
            assert moderator.delete(f"/applications/{id}").status_code == 204
        else:
            with app.app_context():
                name = fetch_value(sa.select(User.username).where(User.id == id))
            assert flask("users", "delete", name, "--content", "keep", "--yes")[0] == 0
    assert changed() == []


@pytest.mark.parametrize("by", ["the owner", "a moderator", "an operator"])
def test_an_account_is_deleted(alice, moderator, flask, changed, by):
    id = alice.user["id"]
    if by == "the owner":
        assert alice.delete("/users/me").status_code == 204
    elif by == "a moderator":
        assert moderator.delete(f"/moderation/users/{id}").status_code == 204
    else:
        assert flask("users", "delete", "alice", "--content", "keep", "--yes")[0] == 0
    assert changed() == [("user", id, "deleted")]


@pytest.mark.parametrize("size", [1, 100])
def test_deleting_an_account_with_its_content(alice, bob, changed, monkeypatch, size):
    monkeypatch.setattr(comment_deletion, "COMMENTS_PER_STEP", size)
    monkeypatch.setattr(post_deletion, "POSTS_PER_STEP", size)
    own, other = alice.create_post("On engines"), bob.create_post("On looms")
    below, image = bob.add_comment(own, "x"), alice.add_image(own)
    answered, last = alice.add_comment(other, "y"), alice.add_comment(other, "z")
    bob.add_comment(other, "w", parent_id=answered["id"])
    changed()
    assert alice.delete("/users/me?content=delete").status_code == 204
    assert sorted(changed()) == sorted(
        [
            ("comment", answered["id"], "edited"),
            ("comment", last["id"], "deleted"),
            ("comment", below["id"], "deleted"),
            ("image", image["id"], "deleted"),
            ("post", own["id"], "deleted"),
            ("user", alice.user["id"], "deleted"),
        ]
    )


@pytest.mark.parametrize("steps", [True, False])
def test_deleting_an_account_edits_the_content_that_is_kept(
    alice, bob, changed, monkeypatch, steps
):
    """Also what is written between the steps and the end, when there are no steps."""
    if not steps:
        monkeypatch.setattr("posting.accounts.views.users.clear_account", lambda *_, **__: None)
    post = alice.create_post("On engines")
    comment = alice.add_comment(bob.create_post("On looms"), "y")
    changed()
    assert alice.delete("/users/me?content=keep").status_code == 204
    assert sorted(changed()) == [
        ("comment", comment["id"], "edited"),
        ("post", post["id"], "edited"),
        ("user", alice.user["id"], "deleted"),
    ]
    assert bob.get(f"/posts/{post['id']}").json["author"] is None


def count_statements(engine):
    statements = []
    sa.event.listen(
        engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2])
    )
    return statements


def test_the_deletion_of_a_post_is_recorded_by_one_statement(app, alice, changed):
    post = alice.create_post("On engines")
    for number in range(5):
        alice.add_comment(post, str(number))
    changed()
    with app.app_context():
        statements = count_statements(db.engine)
    alice.delete(f"/posts/{post['id']}")
    assert sum("INSERT INTO changes" in statement for statement in statements) == 1
    assert len(changed()) == 6


def test_pages_of_changes_follow_each_other(anonymous, alice):
    cursor = cursor_of_now(anonymous)
    ids = [alice.create_post(str(number))["id"] for number in range(7)]
    found = []
    for expected in (3, 3, 1, 0):
        changes, cursor = follow(anonymous, cursor, limit=3)
        assert len(changes) == expected
        found += [change["id"] for change in changes]
    assert found == ids


def test_a_response_stays_the_same_while_nothing_changes(anonymous, alice):
    cursor = cursor_of_now(anonymous)
    assert follow(anonymous, cursor) == ([], cursor)
    tag = anonymous.get(f"/changes?after={cursor}").headers["ETag"]
    response = anonymous.get(f"/changes?after={cursor}", headers={"If-None-Match": tag})
    assert response.status_code == 304
    alice.create_post("On engines")
    wait_for_others(anonymous)
    response = anonymous.get(f"/changes?after={cursor}", headers={"If-None-Match": tag})
    assert response.status_code == 200


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "",
        "0123456789abcdef.0",
        "0123456789abcdef.0.1.20780.1",
        "0123456789abcdef.0.-1",
        "0123456789abcdef.0.9999999999999999999",
        "0123456789abcdef.0.\N{ARABIC-INDIC DIGIT ONE}",
        "a" * 513,
    ],
)
def test_other_texts_are_no_cursors(anonymous, cursor):
    response = anonymous.get("/changes", query_string={"after": cursor})
    assert_problem(response, 422)
    assert response.json["errors"][0]["parameter"] == "after"


def changed_cursor(cursor, **parts):
    names = ("epoch", "transaction", "seq")
    return ".".join((dict(zip(names, cursor.split("."), strict=True)) | parts).values())


def assert_expired(client, cursor):
    response = client.get("/changes", query_string={"after": cursor})
    assert_problem(response, 410)
    assert response.json["code"] == "cursor_expired"


def test_what_moderators_set_is_an_edit(moderator, post, changed):
    changed()
    for mark in ("lock", "pin"):
        moderator.put(f"/posts/{post['id']}/{mark}")
        assert changed() == [("post", post["id"], "edited")]
        moderator.put(f"/posts/{post['id']}/{mark}")
        assert changed() == []


@pytest.mark.parametrize("days", [-40, 0, 40])
def test_a_cursor_before_what_was_purged_has_expired_whatever_the_clock_says(
    app, anonymous, alice, monkeypatch, days
):
    monkeypatch.setattr(store, "PURGE_EVERY", 1)
    first = cursor_of_now(anonymous)
    for number in range(5):
        alice.create_post(str(number))
    second = cursor_of_now(anonymous)
    age(app, LIFETIME.days + 1)
    alice.create_post("the last")
    wait_for_others(anonymous)
    assert len(ages(app)) == 1
    with shifted_clock(days=days):
        assert_expired(anonymous, first)
        changes, _ = follow(anonymous, second)
        assert len(changes) == 1


@pytest.mark.parametrize("days", [1, 31, 33, 40, 4000])
def test_a_clock_that_jumps_purges_no_change(anonymous, alice, monkeypatch, days):
    monkeypatch.setattr(store, "PURGE_EVERY", 1)
    cursor = cursor_of_now(anonymous)
    before = [alice.create_post(str(number))["id"] for number in range(5)]
    with shifted_clock(days=days):
        ahead = testbed.sign_in(alice.application, "alice")  # the other session has expired
        then = [ahead.create_post(str(number))["id"] for number in range(5)]
        changes, _ = follow(anonymous, cursor)
        assert [change["id"] for change in changes] == before + then
    after = [alice.create_post("later")["id"]]
    changes, _ = follow(anonymous, cursor)
    assert [change["id"] for change in changes] == before + then + after


def test_changes_that_are_purged_while_they_are_read_are_not_skipped(
    app, anonymous, alice, monkeypatch
):
    cursor = cursor_of_now(anonymous)
    epoch, *_ = cursor.split(".")
    alice.create_post("On engines")
    wait_for_others(anonymous)
    fetch = store.fetch_all

    def purge_before_fetching(statement, **values):
        with transaction() as connection:
            connection.execute(sa.delete(Change))
            place = {"purged_transaction_id": 2**40, "purged_seq": 1}
            connection.execute(sa.update(Epoch).values(place | {"purged_epoch": epoch}))
        return fetch(statement, **values)

    monkeypatch.setattr(store, "fetch_all", purge_before_fetching)
    assert_expired(anonymous, cursor)


def note_purged(app, transaction_id, seq, *, cursor, **values):
    """Note a place that was purged, in the epoch of a cursor or another one."""
    epoch, *_ = cursor.split(".")
    place = {"purged_transaction_id": transaction_id, "purged_seq": seq, "purged_epoch": epoch}
    with app.app_context(), transaction() as connection:
        connection.execute(sa.update(Epoch).values(place | values))


def test_a_place_that_was_purged_in_another_epoch_does_not_count(
    app, anonymous, alice, monkeypatch
):
    """As after pg_restore to a new server, whose transactions have low numbers again."""
    monkeypatch.setattr(store, "PURGE_EVERY", 1)
    cursor = cursor_of_now(anonymous)
    note_purged(app, 2**40, 2**40, cursor=cursor)
    assert_expired(anonymous, cursor)
    note_purged(app, 2**40, 2**40, cursor="0123456789abcdef.0.0")
    post = alice.create_post("On engines")
    [change], following = follow(anonymous, cursor)
    assert change["id"] == post["id"]
    age(app, LIFETIME.days + 1)
    alice.create_post("the last")
    assert_expired(anonymous, cursor)
    changes, _ = follow(anonymous, following)
    assert len(changes) == 1


def test_a_restore_renews_the_epoch_of_what_was_purged(app, anonymous):
    """The restored row keeps the place, and has another id."""
    cursor = cursor_of_now(anonymous)
    note_purged(app, 2**40, 2**40, cursor=cursor, id="a" * 21)
    follow(anonymous, cursor_of_now(anonymous))


@pytest.mark.skipif(not POSTGRES, reason="SQLite has no numbers of transactions")
@pytest.mark.parametrize("own", [0, 1])
def test_purged_changes_of_another_server_have_no_place(app, anonymous, alice, monkeypatch, own):
    cursor = cursor_of_now(anonymous)
    for number in range(2 + own):
        alice.create_post(str(number))
    age(app, LIFETIME.days + 1)
    with app.app_context(), transaction() as connection:
        seqs = sa.select(Change.seq).order_by(Change.seq).limit(2).scalar_subquery()
        foreign = sa.update(Change).where(Change.seq.in_(seqs))
        connection.execute(foreign.values(transaction_id=2**40))
    monkeypatch.setattr(store, "PURGE_EVERY", 1)
    last = alice.create_post("the last")
    assert len(ages(app)) == 1
    if own:
        assert_expired(anonymous, cursor)
    else:
        assert [change["id"] for change in follow(anonymous, cursor)[0]] == [last["id"]]
    follow(anonymous, cursor_of_now(anonymous))


@pytest.mark.skipif(not POSTGRES, reason="Postgres only")
def test_two_requests_do_not_purge_at_once(app, alice, monkeypatch):
    monkeypatch.setattr(store, "PURGE_EVERY", 1)
    alice.create_post("On engines")
    age(app, LIFETIME.days + 1)
    with app.app_context(), transaction() as other:
        other.execute(store._LOCK_PURGED)
        alice.create_post("does not wait")
        assert len(ages(app)) == 2
    alice.create_post("the last")
    assert len(ages(app)) == 2


def test_a_cursor_after_the_end_has_expired(anonymous, alice):
    """As after a copy of an old database file was put in place by hand."""
    alice.create_post("On engines")
    cursor = cursor_of_now(anonymous)
    part, place = ("transaction", 1) if POSTGRES else ("seq", 2)
    number = int(cursor.split(".")[place])
    assert_expired(anonymous, changed_cursor(cursor, **{part: str(number + 10**6)}))


def test_a_cursor_expires_with_its_epoch(app, anonymous):
    cursor = cursor_of_now(anonymous)
    with app.app_context(), transaction() as connection:
        renew_epoch(connection)
    assert_expired(anonymous, cursor)
    follow(anonymous, cursor_of_now(anonymous))


@pytest.mark.skipif(not POSTGRES or not shutil.which("pg_restore"), reason="uses pg_restore")
def test_a_cursor_expires_with_pg_restore(make_app, fresh_url, tmp_path):
    client = make_app(DATABASE_URL=fresh_url).test_client()
    file = str(tmp_path / "backup.dump")
    subprocess.run(["pg_dump", "--format=custom", f"--file={file}", fresh_url], check=True)
    for _ in range(2):
        cursor = cursor_of_now(client)
        follow(client, cursor)
        subprocess.run(shlex.split(PG_RESTORE.format(url=fresh_url, file=file)), check=True)
        assert_expired(client, cursor)


@pytest.mark.skipif(not POSTGRES, reason="Postgres only")
def test_an_ordinary_role_can_read_the_epoch(app):
    with app.app_context(), transaction() as connection:
        connection.exec_driver_sql("CREATE ROLE reader_of_epochs NOSUPERUSER")
        connection.exec_driver_sql("GRANT SELECT ON epochs TO reader_of_epochs")
        connection.exec_driver_sql("SET LOCAL ROLE reader_of_epochs")
        with patch(
            "posting.db.epoch.fetch_all", lambda statement: [connection.execute(statement).one()]
        ):
            assert len(current_epoch()) == 16
        connection.rollback()


@pytest.mark.skipif(not POSTGRES, reason="Postgres only")
def test_what_is_committed_late_is_not_skipped(app, anonymous, alice, changed):
    """A transaction that began first has the lower number, and ends last."""
    with app.app_context(), transaction() as late:
        first = {"kind": "post", "id": "a" * 21, "post_id": "a" * 21, "change": "created"}
        late.execute(store._insert("postgresql"), {**first, "at": now()})
        post = alice.create_post("On engines")
        assert changed(wait=False) == []
        late.commit()
    assert changed() == [("post", "a" * 21, "created"), ("post", post["id"], "created")]


def age(app, days):
    with app.app_context(), transaction() as connection:
        connection.execute(sa.update(Change).values(at=now() - timedelta(days=days)))


def ages(app):
    with app.app_context():
        return [row.at for row in fetch_all(sa.select(Change.at).order_by(Change.seq))]


def test_old_changes_are_purged_where_changes_are_added(app, alice, monkeypatch):
    monkeypatch.setattr(store, "PURGE_EVERY", 1)
    for number in range(3):
        alice.create_post(str(number))
    age(app, LIFETIME.days - 1)
    alice.create_post("still there")
    assert len(ages(app)) == 4
    age(app, LIFETIME.days + 1)
    alice.create_post("alone")
    assert len(ages(app)) == 1


def test_the_last_change_is_kept_so_that_numbers_are_not_given_again(app, alice, changed):
    post = alice.create_post("On engines")
    changed()
    age(app, LIFETIME.days + 1)
    with app.app_context(), suppress(KeyError), unit_of_work():
        store.record_change("post", post["id"], post["id"], "edited")
        store.purge_changes()
        raise KeyError  # so that nothing is committed
    alice.delete(f"/posts/{post['id']}")  # which purges
    assert changed() == [("post", post["id"], "deleted")]
    assert len(ages(app)) == 1


def test_a_purge_is_bounded(app, alice, monkeypatch):
    monkeypatch.setattr(store, "PURGE_EVERY", 2**31)  # so that only the deletion purges
    for number in range(3):
        alice.create_post(str(number))
    with app.app_context(), transaction() as connection:
        values = {"kind": "post", "id": "a" * 21, "post_id": "a" * 21, "change": "created"}
        old = now() - LIFETIME - timedelta(days=1)
        connection.execute(sa.update(Change).values(at=old))
        connection.execute(sa.insert(Change), [values | {"at": old}] * store.MAX_PURGED)
    post = alice.create_post("the last")
    alice.delete(f"/posts/{post['id']}")
    assert len(ages(app)) == 3 + 2
