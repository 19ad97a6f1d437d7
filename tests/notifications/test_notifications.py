"""Notifications: who is told of what, and how a member reads them."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import sqlalchemy as sa

from posting.accounts.models import User
from posting.db.base import db
from posting.db.transactions import commit, transaction
from posting.db.types import new_id, now
from posting.notifications import kinds, store
from posting.notifications.models import Notification
from posting.notifications.queries import MODERATORS
from posting.notifications.store import notify
from tests.conftest import PASSWORD, POSTGRES, apply
from tests.helpers.assertions import assert_problem, error_locations, follow_pages

pytestmark = pytest.mark.usefixtures("stays_consistent")

DAY = timedelta(days=1)


@pytest.fixture
def eve(sign_in):
    return sign_in("eve")


def told(client, query=""):
    """Return the notifications of a client, newest first."""
    response = client.get(f"/notifications{query}")
    assert response.status_code == 200, response.text
    return response.json


def kinds_of(client):
    return [notification["kind"] for notification in told(client)]


def unread(client):
    return client.get("/notifications/unread").json["count"]


def read(client, notification):
    return client.post("/notifications/read", json={"up_to": notification["id"]})


def choose(client, post, level):
    response = client.put(f"/posts/{post['id']}/subscription", json={"level": level})
    assert response.status_code == 200, response.text


def change(app, **values):
    with app.app_context():
        db.session.execute(sa.update(Notification).values(**values))
        db.session.commit()


def count_rows(app, **columns):
    with app.app_context():
        statement = sa.select(sa.func.count()).select_from(Notification)
        return db.session.scalar(statement.filter_by(**columns))


class TestComments:
    def test_the_author_of_a_post_is_told_of_a_comment(self, alice, bob, post):
        comment = bob.add_comment(post, "And *cloth*?\n\nOr [wool](/x)?")
        [notification] = told(alice)
        assert notification == {
            "id": notification["id"],
            "kind": "comment",
            "created_at": notification["created_at"],
            "read": False,
            "actor": {name: bob.user[name] for name in ("id", "username", "display_name")},
            "post": {"id": post["id"], "title": "On engines"},
            "comment": {"id": comment["id"], "excerpt": "And cloth? Or wool?"},
            "reason": None,
            "excerpt": None,
        }
        assert told(bob) == []

    def test_nobody_is_told_of_their_own_acts(self, alice, post):
        comment = alice.add_comment(post, "@alice")
        alice.add_comment(post, "@alice", parent_id=comment["id"])
        choose(alice, post, "all")
        alice.add_comment(post, "@alice")
        alice.create_post("On looms", content="@alice")
        assert told(alice) == []

    def test_the_author_of_a_comment_is_told_of_a_reply(self, alice, bob, eve, post):
        comment = bob.add_comment(post, "And cloth?")
        reply = eve.add_comment(post, "Cloth too.", parent_id=comment["id"])
        assert kinds_of(alice) == ["comment", "comment"]
        [notification] = told(bob)
        assert notification["kind"] == "reply"
        assert notification["comment"]["id"] == reply["id"]
        assert notification["actor"]["username"] == "eve"

    def test_only_the_author_of_the_parent_gets_a_reply(self, alice, bob, eve, post):
        first = bob.add_comment(post, "And cloth?")
        second = eve.add_comment(post, "Cloth too.", parent_id=first["id"])
        alice.add_comment(post, "Indeed.", parent_id=second["id"])
        assert kinds_of(bob) == ["reply"]
        assert kinds_of(eve) == ["reply"]

    def test_a_comment_tells_nobody_twice(self, alice, bob, post):
        """A reply concerns a recipient most, then a mention, then a comment."""
        choose(alice, post, "all")
        comment = alice.add_comment(post, "And cloth?")
        bob.add_comment(post, "@alice @Alice", parent_id=comment["id"])
        assert kinds_of(alice) == ["reply"]
        bob.add_comment(post, "@alice")
        assert kinds_of(alice) == ["mention", "reply"]

    def test_a_repeated_request_tells_nobody_again(self, alice, bob, post):
        for _ in range(2):
            response = bob.post(
                f"/posts/{post['id']}/comments",
                json={"content": "And cloth?"},
                headers={"Idempotency-Key": "1"},
            )
            assert response.status_code == 201
        assert kinds_of(alice) == ["comment"]

    def test_a_refused_comment_tells_nobody(self, alice, bob, post):
        path = f"/posts/{post['id']}/comments"
        refused = bob.post(path, json={"content": "@alice", "parent_id": new_id()})
        assert refused.status_code == 422
        assert told(alice) == []

    def test_a_post_without_an_author_tells_nobody(self, alice, bob, eve, post):
        comment = alice.add_comment(post, "And cloth?")
        assert alice.delete("/users/me").status_code == 204
        bob.add_comment(post, "Cloth too.", parent_id=comment["id"])
        assert kinds_of(bob) == kinds_of(eve) == []


class TestMentions:
    def test_a_post_and_a_comment_mention_members(self, alice, bob, eve):
        post = alice.create_post("On engines", content="Ask @BOB or `@eve`.")
        [notification] = told(bob)
        assert notification["kind"] == "mention"
        assert notification["post"] == {"id": post["id"], "title": "On engines"}
        assert notification["comment"] is None
        assert told(eve) == []
        bob.add_comment(post, "Or @eve, @nobody.")
        assert kinds_of(eve) == ["mention"]

    def test_a_title_mentions_nobody(self, alice, bob):
        alice.create_post("@bob")
        assert told(bob) == []

    @pytest.mark.parametrize("kind", ["post", "comment"])
    def test_an_edit_tells_only_those_who_were_not_named_before(self, alice, bob, eve, kind):
        item = post = alice.create_post("On engines", content="Ask @bob.")
        if kind == "comment":
            item = alice.add_comment(post, "Ask @bob.")
        before = len(told(bob))
        path = f"/{kind}s/{item['id']}"
        for content in ("Ask @bob or @eve.", "Ask @eve or @bob!", "Ask `@eve`.", "Ask @eve."):
            assert alice.patch(path, json={"content": content}).status_code == 200
        assert len(told(bob)) == before
        assert kinds_of(eve) == ["mention"]

    def test_an_edit_of_a_comment_tells_nobody_who_was_told_of_it(self, alice, bob, post):
        comment = bob.add_comment(post, "And cloth?")
        bob.patch(f"/comments/{comment['id']}", json={"content": "And cloth, @alice?"})
        assert kinds_of(alice) == ["comment"]

    def test_an_edit_without_a_new_text_tells_nobody(self, alice, bob):
        post = alice.create_post("On engines", content="Ask @bob.")
        for body in ({}, {"title": "On looms"}, {"content": "Ask @bob."}):
            assert alice.patch(f"/posts/{post['id']}", json=body).status_code == 200
        assert kinds_of(bob) == ["mention"]

    def test_only_the_first_twenty_count(self, alice, bob):
        names = " ".join(f"@user-{number}" for number in range(20))
        alice.create_post("On engines", content=f"{names} @bob")
        assert told(bob) == []

    def test_a_pending_account_is_told_of_nothing(self, app, alice, bob):
        id = apply(app)
        with app.app_context():
            name = db.session.get(User, id).username
        alice.create_post("On engines", content=f"@{name} @bob")
        assert count_rows(app) == count_rows(app, user_id=bob.user["id"]) == 1


class TestSubscriptions:
    def test_a_choice_is_set_read_and_deleted(self, bob, post):
        path = f"/posts/{post['id']}/subscription"
        assert bob.get(path).json == {"level": "default"}
        for level in ("all", "muted", "muted"):
            response = bob.put(path, json={"level": level})
            assert (response.status_code, response.json) == (200, {"level": level})
            assert bob.get(path).json == {"level": level}
        for _ in range(2):
            assert bob.delete(path).status_code == 204
            assert bob.get(path).json == {"level": "default"}

    def test_a_follower_is_told_of_all_comments(self, alice, bob, eve, post):
        bob.add_comment(post, "And cloth?")
        choose(eve, post, "all")
        bob.add_comment(post, "And wool?")
        assert kinds_of(eve) == ["comment"]
        assert kinds_of(alice) == ["comment", "comment"]
        eve.delete(f"/posts/{post['id']}/subscription")
        bob.add_comment(post, "And silk?")
        assert kinds_of(eve) == ["comment"]

    def test_a_muted_post_tells_nothing(self, alice, bob, post):
        own = alice.add_comment(post, "And cloth?")
        choose(alice, post, "muted")
        bob.add_comment(post, "@alice", parent_id=own["id"])
        comment = bob.add_comment(post, "And wool?")
        bob.patch(f"/comments/{comment['id']}", json={"content": "And wool, @alice?"})
        assert told(alice) == []
        bob.add_comment(alice.create_post("On looms"), "And cloth?")
        assert kinds_of(alice) == ["comment"]

    def test_a_muted_post_that_is_edited_tells_nothing(self, alice, bob, post):
        choose(bob, post, "muted")
        alice.patch(f"/posts/{post['id']}", json={"content": "Ask @bob."})
        assert told(bob) == []

    @pytest.mark.parametrize("body", [{}, {"level": "default"}, {"level": None}, {"level": 1}])
    def test_another_choice_is_422(self, bob, post, body):
        response = bob.put(f"/posts/{post['id']}/subscription", json=body)
        assert error_locations(response) == {"/level"}

    def test_an_unknown_post_is_404(self, bob):
        path = f"/posts/{new_id()}/subscription"
        body = {"level": "all"}
        for response in (bob.get(path), bob.put(path, json=body), bob.delete(path)):
            assert assert_problem(response, 404)["code"] == "no_such_post"

    def test_it_ends_with_the_post_and_with_the_account(self, app, alice, bob, eve, post):
        choose(bob, post, "all")
        choose(eve, post, "all")
        assert bob.delete("/users/me").status_code == 204
        alice.add_comment(post, "And cloth?")
        assert count_rows(app) == 1
        assert alice.delete(f"/posts/{post['id']}").status_code == 204
        assert count_rows(app) == 0

    def test_choices_are_limited(self, make_app, bob, post):
        limited = bob.copy(make_app(RATE_LIMITS="on", LIMIT_COMMENTS="1/hour"))
        path = f"/posts/{post['id']}/subscription"
        assert limited.put(path, json={"level": "all"}).status_code == 200
        response = limited.put(path, json={"level": "muted"})
        assert_problem(response, 429)
        assert response.headers["RateLimit-Policy"] == '"subscriptions";q=1;w=3600'
        assert limited.get(path).json == {"level": "all"}


class TestApplications:
    @pytest.fixture
    def applicants(self, make_app):
        return make_app(SIGNUP="approval").test_client()

    def test_moderators_are_told_of_an_application(self, applicants, alice, moderator):
        newcomer = sign_up(applicants, "newcomer")
        [notification] = told(moderator)
        assert notification["kind"] == "application"
        assert notification["actor"]["id"] == newcomer["id"]
        assert notification["post"] is notification["comment"] is None
        assert told(alice) == []

    @pytest.mark.parametrize("decision", ["approve", "refuse"])
    def test_a_decision_deletes_it(self, applicants, moderator, decision):
        path = f"/applications/{sign_up(applicants, 'newcomer')['id']}"
        sign_up(applicants, "another")
        if decision == "approve":
            assert moderator.post(f"{path}/approval").status_code == 201
        else:
            assert moderator.delete(path).status_code == 204
        assert [each["actor"]["username"] for each in told(moderator)] == ["another"]

    def test_a_former_moderator_does_not_see_who_it_is(self, app, applicants, moderator):
        sign_up(applicants, "newcomer")
        with app.app_context():
            db.session.execute(sa.update(User).values(role="member"))
            db.session.commit()
        [notification] = told(moderator)
        assert notification["actor"] is None

    def test_an_open_sign_up_tells_nobody(self, anonymous, moderator):
        anonymous.post("/signup", json={"username": "newcomer", "password": PASSWORD})
        assert told(moderator) == []


def sign_up(client, username):
    body = {"username": username, "password": PASSWORD, "application": "I weave too."}
    response = client.post("/signup", json=body)
    assert response.status_code == 201, response.text
    return response.json


class TestDeletion:
    def test_a_comment_takes_its_notifications_along(self, app, alice, bob, post):
        comment = bob.add_comment(post, "And cloth?")
        bob.add_comment(post, "And wool?")
        assert bob.delete(f"/comments/{comment['id']}").status_code == 204
        assert [each["comment"]["excerpt"] for each in told(alice)] == ["And wool?"]
        assert count_rows(app) == 1

    def test_so_does_a_comment_that_is_kept_for_its_replies(self, app, alice, bob, post):
        comment = bob.add_comment(post, "And cloth?")
        alice.add_comment(post, "Cloth too.", parent_id=comment["id"])
        assert bob.delete(f"/comments/{comment['id']}").status_code == 204
        assert told(alice) == []
        assert kinds_of(bob) == ["reply"]

    def test_a_post_takes_those_of_its_comments_along(self, app, alice, bob):
        post = alice.create_post("On engines", content="Ask @bob.")
        alice.add_comment(post, "Or @bob.")
        bob.add_comment(post, "Me?")
        assert alice.delete(f"/posts/{post['id']}").status_code == 204
        assert count_rows(app) == 0

    @pytest.mark.parametrize("content", ["keep", "delete"])
    def test_an_account_takes_its_own_along(self, app, alice, bob, post, content):
        bob.add_comment(post, "And cloth?")
        assert alice.delete(f"/users/me?content={content}").status_code == 204
        assert count_rows(app) == 0

    def test_those_of_a_deleted_actor_have_none(self, app, alice, bob, post):
        bob.add_comment(post, "And cloth?")
        assert bob.delete("/users/me").status_code == 204
        [notification] = told(alice)
        assert notification["actor"] is None
        assert notification["comment"]["excerpt"] == "And cloth?"
        assert count_rows(app, actor_id=None) == 1

    def test_an_account_with_its_content_leaves_none(self, alice, bob, post):
        bob.add_comment(post, "And cloth?")
        bob.create_post("On looms", content="@alice")
        assert bob.delete("/users/me?content=delete").status_code == 204
        assert told(alice) == []

    def test_an_account_is_cleared_in_steps(self, app, alice, bob, post, monkeypatch):
        monkeypatch.setattr("posting.notifications.deletion.ROWS_PER_STEP", 2)
        monkeypatch.setattr("posting.accounts.deletion.PAUSE", 0)
        for number in range(5):
            bob.add_comment(post, str(number))
        assert bob.delete("/users/me").status_code == 204
        assert [each["actor"] for each in told(alice)] == [None] * 5
        assert alice.delete("/users/me").status_code == 204
        assert count_rows(app) == 0


class TestList:
    def test_it_is_newest_first_and_has_pages(self, alice, bob, post):
        ids = [bob.add_comment(post, str(number))["id"] for number in range(5)]
        for query in ("", "&unread=true"):
            pages = [*follow_pages(alice, f"/notifications?limit=2{query}")]
            assert [len(page) for page in pages] == [2, 2, 1]
            listed = [row["comment"]["id"] for page in pages for row in page]
            assert listed == ids[::-1]

    def test_a_cursor_is_that_of_its_list(self, alice, bob, post):
        for number in range(2):
            bob.add_comment(post, str(number))
        [url] = [alice.get("/notifications?limit=1").headers["Link"].split(">")[0].strip("<")]
        assert alice.get(url).status_code == 200
        assert error_locations(alice.get(f"{url}&unread=true")) == {"cursor"}

    @pytest.mark.parametrize("value", ["false", "", "1"])
    def test_another_choice_is_422(self, alice, value):
        assert error_locations(alice.get(f"/notifications?unread={value}")) == {"unread"}

    def test_an_excerpt_is_short(self, alice, bob, post):
        bob.add_comment(post, "word " * 1000)
        [notification] = told(alice)
        assert notification["comment"]["excerpt"] == ("word " * 40).strip() + " …"

    def test_a_comment_that_a_former_version_deletes_is_null(self, alice, bob, post, monkeypatch):
        comment = bob.add_comment(post, "And cloth?")
        alice.add_comment(post, "Cloth too.", parent_id=comment["id"])
        monkeypatch.setattr("posting.comments.store.announce", lambda _: None)
        bob.delete(f"/comments/{comment['id']}")
        [notification] = told(alice)
        assert notification["comment"] is notification["post"] is None
        assert alice.delete(f"/posts/{post['id']}").status_code == 204

    def test_it_takes_one_query(self, alice, bob, post, statements):
        for number in range(3):
            bob.add_comment(post, str(number))
        statements.clear()
        alice.get("/notifications")
        assert len([sql for sql in statements if "FROM" in sql]) == 2  # with that of the session

    def test_others_are_not_seen(self, alice, bob, reader, post):
        bob.add_comment(post, "And cloth?")
        assert told(bob) == []
        assert unread(bob) == 0
        assert told(reader) == told(alice) != []

    def test_it_is_not_stored(self, alice):
        response = alice.get("/notifications")
        assert response.headers["Cache-Control"] == "private, no-store"


class TestReading:
    def test_all_up_to_one_become_read(self, alice, bob, post):
        for number in range(3):
            bob.add_comment(post, str(number))
        newest, middle, oldest = told(alice)
        assert unread(alice) == 3
        response = read(alice, middle)
        assert (response.status_code, response.json) == (200, {"count": 1})
        assert told(alice) == [newest, middle | {"read": True}, oldest | {"read": True}]
        assert told(alice, "?unread=true") == [newest]
        assert read(alice, oldest).json == {"count": 1}
        assert read(alice, newest).json == {"count": 0}
        assert unread(alice) == 0

    def test_those_of_others_stay_unread(self, alice, bob, eve, post):
        choose(eve, post, "all")
        bob.add_comment(post, "And cloth?")
        [notification] = told(alice)
        assert read(alice, notification).json == {"count": 0}
        assert unread(eve) == 1

    def test_an_unknown_one_is_422(self, alice, bob, post):
        comment = bob.add_comment(post, "And cloth?")
        [notification] = told(alice)
        bob.delete(f"/comments/{comment['id']}")
        for sent in (notification, {"id": new_id()}):
            [error] = assert_problem(read(alice, sent), 422)["errors"]
            assert (error["pointer"], error["code"]) == ("/up_to", "no_such_notification")

    def test_one_of_another_member_is_422(self, alice, bob, post):
        bob.add_comment(post, "And cloth?")
        [notification] = told(alice)
        assert error_locations(read(bob, notification)) == {"/up_to"}

    @pytest.mark.parametrize("body", [{}, {"up_to": None}, {"up_to": "x"}, {"up_to": 1}])
    def test_a_malformed_one_is_422(self, alice, body):
        assert error_locations(alice.post("/notifications/read", json=body)) == {"/up_to"}


class TestCount:
    def test_it_ends_at_a_hundred(self, app, alice):
        for number in (99, 1, 1):
            add(app, alice, number)
            expected = min(100, count_rows(app))
            assert unread(alice) == expected
        assert count_rows(app) == 101

    def test_a_client_asks_whether_it_has_changed(self, alice, bob, post):
        response = alice.get("/notifications/unread")
        assert response.headers["Cache-Control"] == "private, no-store"
        unchanged = {"If-None-Match": response.headers["ETag"]}
        assert alice.get("/notifications/unread", headers=unchanged).status_code == 304
        bob.add_comment(post, "And cloth?")
        assert alice.get("/notifications/unread", headers=unchanged).json == {"count": 1}


def add(app, client, number, **values):
    """Add notifications of a client, each newer than the one before."""
    start = values.pop("created_at", now())
    with app.app_context():
        rows = [
            {
                "user_id": client.user["id"],
                "created_at": start + timedelta(milliseconds=each),
                "id": new_id(),
                "kind": "comment",
                **values,
            }
            for each in range(number)
        ]
        db.session.execute(sa.insert(Notification), rows)
        db.session.commit()


class TestRetention:
    def test_read_ones_are_purged_after_90_days(self, app, alice, bob, post):
        bob.add_comment(post, "And cloth?")
        [notification] = told(alice)
        read(alice, notification)
        add(app, bob, 1, read_at=now() - 91 * DAY)
        add(app, bob, 1, read_at=now() - 89 * DAY)
        add(app, bob, 1, created_at=now() - 365 * DAY)
        read(alice, notification)
        assert count_rows(app, user_id=bob.user["id"]) == 2
        assert len(told(bob, "?unread=true")) == 1

    def test_a_member_who_reads_keeps_the_newest(self, app, alice, monkeypatch):
        monkeypatch.setattr(store, "purge_expired", lambda _: None)
        add(app, alice, 1000 + 150, created_at=now() - DAY)
        [newest, *_] = told(alice)
        for left in (1050, 1000, 1000):
            read(alice, newest)
            assert count_rows(app) == left
        assert told(alice)[0]["id"] == newest["id"]

    def test_one_recipient_in_64_keeps_the_newest(self, app, alice, bob, post, monkeypatch):
        first = alice.user["id"][0]
        add(app, alice, 1001, created_at=now() - DAY)
        for letter, left in (("a" if first != "a" else "b", 1002), (first, 1000)):
            monkeypatch.setattr(store, "new_id", lambda letter=letter: letter + new_id()[1:])
            bob.add_comment(post, "And cloth?")
            assert count_rows(app) == left


class TestKinds:
    def test_another_feature_adds_its_own(self, app, moderator, post):
        """Without a change of the table, and without an import from here."""
        with app.app_context():
            notify(
                MODERATORS,
                actor_id=None,
                post_id=post["id"],
                reason="Off topic.",
                excerpt="They weave",
                kind="removal",
            )
            commit()
        [notification] = told(moderator)
        assert notification["kind"] == "removal"
        assert notification["actor"] is None
        assert notification["post"]["id"] == post["id"]
        assert (notification["reason"], notification["excerpt"]) == ("Off topic.", "They weave")

    def test_the_document_lists_the_kinds_of_all_features(self, make_app, monkeypatch):
        monkeypatch.setattr(kinds, "_known", [*kinds.known_kinds()])
        assert kinds.new_kind("greeting") == "greeting"
        document = make_app().test_client().get("/openapi.json").json
        field = document["components"]["schemas"]["Notification"]["properties"]["kind"]
        assert field["x-extensible-enum"] == [
            *("comment", "reply", "mention", "application"),
            *("removal", "report_closed", "report", "greeting"),
        ]


class TestStatements:
    """One statement finds and inserts all recipients."""

    @pytest.fixture
    def about_notifications(self, statements, monkeypatch):
        """Return a function that returns the statements about notifications so far."""
        monkeypatch.setattr(store, "delete_surplus", lambda _: None)
        return lambda: [sql for sql in statements if "notifications" in sql]

    def test_a_comment_costs_one(self, alice, bob, eve, post, about_notifications):
        own = alice.add_comment(post, "And cloth?")
        choose(eve, post, "all")
        before = len(about_notifications())
        bob.add_comment(post, "@eve", parent_id=own["id"])
        [statement] = about_notifications()[before:]
        assert statement.startswith("INSERT")
        assert kinds_of(alice) == ["reply"]
        assert kinds_of(eve) == ["mention"]

    def test_a_post_without_mentions_costs_none(self, alice, about_notifications):
        alice.create_post("On engines", content="Ask ada@example.org.")
        assert about_notifications() == []


@pytest.mark.skipif(not POSTGRES, reason="SQLite has one writer at a time")
class TestLocks:
    @pytest.mark.usefixtures("short_lock_timeout")
    def test_a_comment_does_not_wait_for_a_recipient(self, app, alice, bob, post):
        with app.app_context(), transaction() as connection:
            own = sa.select(User.id).where(User.id == alice.user["id"])
            connection.execute(own.with_for_update())
            bob.add_comment(post, "@alice")
        assert kinds_of(alice) == ["mention"]

    def test_what_is_added_while_an_account_is_deleted_goes_along(self, app, alice, bob, post):
        """The transaction of a comment has begun before the deletion, and ends after it."""
        with ThreadPoolExecutor() as pool, app.app_context(), transaction() as connection:
            row = {"user_id": alice.user["id"], "created_at": now(), "id": new_id(), "kind": "x"}
            connection.execute(sa.insert(Notification), row | {"actor_id": bob.user["id"]})
            deletion = pool.submit(alice.delete, "/users/me")
            while bob.get(f"/users/{alice.user['id']}").status_code == 200:
                assert not deletion.done()
            connection.commit()
            assert deletion.result().status_code == 204
        assert count_rows(app) == 0

    @pytest.mark.usefixtures("short_lock_timeout")
    def test_a_deletion_succeeds_while_another_transaction_goes_on(self, app, alice, bob):
        with app.app_context(), transaction() as connection:
            row = {"user_id": bob.user["id"], "created_at": now(), "id": new_id(), "kind": "x"}
            connection.execute(sa.insert(Notification), row)
            assert alice.delete("/users/me").status_code == 204
            connection.rollback()
