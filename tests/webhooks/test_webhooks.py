"""Webhooks: events, signatures, receivers that fail, and who may have them."""

import json
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import sqlalchemy as sa
from standardwebhooks import Webhook, WebhookVerificationError

from posting.db.transactions import execute, unit_of_work
from posting.outbound import Answer, NotPublicError
from posting.outbox.delivery import deliver_now
from posting.outbox.store import add_rows, count_waiting
from posting.testbed import PASSWORD
from posting.webhooks.models import EVENTS, WEBHOOK
from posting.webhooks.store import follow_changes
from tests.helpers.assertions import assert_problem
from tests.helpers.changes import wait_for_others
from tests.helpers.clock import shifted_clock
from tests.helpers.moderation import report
from tests.helpers.uploads import form

URL = "https://chat.example.net/posting"
PASSWORD_BODY = {"current_password": PASSWORD}


class Receiver:
    """A program that gets the requests of a webhook. It keeps them, and returns `answer`."""

    def __init__(self, app):
        self._app = app
        self.requests = []
        self.answer = Answer(204, None)

    def post(self, url, body, headers, *, private):
        if isinstance(self.answer, Exception):
            raise self.answer
        self.requests.append((url, body, headers, private))
        return self.answer

    def get(self, **later):
        """Send what is due now, or later. Return the new events."""
        before = len(self.requests)
        wait_for_others(self._app.test_client())
        with self._app.app_context(), shifted_clock(**later):
            deliver_now()
        return [json.loads(body) for _, body, _, _ in self.requests[before:]]


@pytest.fixture
def receiver(app, monkeypatch):
    receiver = Receiver(app)
    monkeypatch.setattr("posting.webhooks.channel.post", receiver.post)
    return receiver


@pytest.fixture
def add(owner, receiver):
    """Return a function that creates a webhook of the owner, and takes its first event."""

    def add(*events, url=URL, client=owner):
        wait_for_others(client)
        body = PASSWORD_BODY | {"url": url, "events": [*(events or EVENTS)]}
        response = client.post("/webhooks", json=body)
        assert response.status_code == 201, response.text
        assert [event["type"] for event in receiver.get()][-1:] == ["webhook.created"]
        return response.json

    return add


def deliveries(owner, webhook):
    response = owner.get(f"/webhooks/{webhook['id']}/deliveries")
    assert response.status_code == 200, response.text
    return response.json


def test_a_new_webhook_has_a_secret_that_is_shown_once(owner, add):
    webhook = add("post.created", "comment.created")
    assert webhook.pop("secret").startswith("whsec_")
    assert webhook == owner.get(f"/webhooks/{webhook['id']}").json
    assert [webhook] == owner.get("/webhooks").json
    assert webhook["events"] == ["post.created", "comment.created"]
    assert webhook["creator"]["id"] == owner.user["id"]
    assert webhook["failing_since"] is webhook["ended_at"] is None


def test_a_post_and_a_comment_are_sent_as_clients_read_them(alice, bob, receiver, add):
    for client in (alice, bob):
        assert client.put("/users/me/avatar", data=form()).status_code == 200
    add()
    post = alice.create_post("On engines")
    comment = bob.add_comment(post, "And cloth?")
    first, second = receiver.get()
    assert (first["type"], second["type"]) == ("post.created", "comment.created")
    for event, url in ((first, f"/posts/{post['id']}"), (second, f"/comments/{comment['id']}")):
        read = bob.get(url).json
        assert read["author"].pop("avatar_url", "")
        assert event["data"] == {name: read[name] for name in event["data"]}
        assert read.keys() - event["data"].keys() == {"images", "files"}
        assert event["data"]["author"].keys() == {"id", "username", "display_name"}
        assert event["timestamp"][:19] >= read["created_at"][:19]
    assert receiver.get() == []


def test_requests_are_signed_as_standard_webhooks_says(alice, receiver, add):
    webhook = add()
    alice.create_post("ångström")
    receiver.get()
    url, body, headers, private = receiver.requests[-1]
    assert (url, private) == (URL, False)
    event = Webhook(webhook["secret"]).verify(body, headers)
    assert event["data"]["title"] == "ångström"
    with pytest.raises(WebhookVerificationError):
        Webhook(webhook["secret"]).verify(body.replace(b"post", b"past"), headers)


def test_the_example_of_the_standard():
    """The signature that the specification computes for this secret, id, time and body."""
    secret, time = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", datetime.fromtimestamp(1614265330, UTC)
    signature = Webhook(secret).sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time, '{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_edits_and_deletions_are_sent(alice, bob, post, receiver, add):
    comment = bob.add_comment(post, "x")
    add("post.edited", "comment.deleted", "post.deleted")
    alice.patch(f"/posts/{post['id']}", json={"title": "On looms"})
    [edited] = receiver.get()
    assert (edited["type"], edited["data"]["title"]) == ("post.edited", "On looms")
    bob.delete(f"/comments/{comment['id']}")
    alice.delete(f"/posts/{post['id']}")
    ids = {"post_id": post["id"]}
    events = [(event["type"], event["data"]) for event in receiver.get()]
    assert ("comment.deleted", {"id": comment["id"], **ids}) in events
    assert ("post.deleted", {"id": post["id"], **ids}) in events


def test_only_what_was_asked_for_is_sent(alice, bob, post, receiver, add):
    add("post.created")
    bob.add_comment(post, "x")
    alice.patch(f"/posts/{post['id']}", json={"title": "On looms"})
    assert receiver.get() == []


def test_nothing_of_before_is_sent(alice, receiver, add):
    alice.create_post("Before")
    add()
    assert receiver.get() == []


def test_what_is_deleted_meanwhile_is_not_sent(alice, receiver, add, owner):
    webhook = add("post.created")
    post = alice.create_post("A mistake")
    alice.delete(f"/posts/{post['id']}")
    assert receiver.get() == []
    assert [each["event"] for each in deliveries(owner, webhook)] == ["webhook.created"]


@pytest.mark.parametrize("events", [(), ("comment.created", "comment.deleted")])
def test_a_deleted_comment_that_is_kept_for_replies(bob, post, receiver, add, events):
    add(*events)
    comment = bob.add_comment(post, "A secret")
    assert len(receiver.get()) == 1
    bob.add_comment(post, "x", parent_id=comment["id"])
    bob.delete(f"/comments/{comment['id']}")
    reply, deletion = receiver.get()
    assert (reply["type"], reply["data"]["content"]) == ("comment.created", "x")
    assert deletion["type"] == "comment.deleted"
    assert deletion["data"] == {"id": comment["id"], "post_id": post["id"]}


def test_a_comment_that_is_deleted_at_once_is_announced_as_deleted_alone(bob, post, receiver, add):
    add()
    comment = bob.add_comment(post, "A secret")
    bob.add_comment(post, "x", parent_id=comment["id"])
    bob.delete(f"/comments/{comment['id']}")
    events = [(event["type"], event["data"]["id"] == comment["id"]) for event in receiver.get()]
    assert sorted(events) == [("comment.created", False), ("comment.deleted", True)]


def test_a_report_is_sent_without_its_text(alice, bob, post, receiver, add):
    add("report.created")
    created = report(bob, "post", post)
    [event] = receiver.get()
    assert (event["type"], event["data"]) == ("report.created", {"id": created["id"]})


def test_an_application_is_sent(make_app, receiver, add):
    add("application.created")
    app = make_app(SIGNUP="approval")
    body = {"username": "hopeful", "password": "a long walk by the sea", "application": "Please"}
    created = app.test_client().post("/signup", json=body)
    assert created.status_code == 201, created.text
    [event] = receiver.get()
    assert event["data"] == {"id": created.json["id"]}


def test_many_changes_are_sent_once_each(app, alice, receiver, add):
    add("post.created")
    posts = [alice.create_post(f"Number {number}")["id"] for number in range(130)]
    wait_for_others(app.test_client())
    with app.app_context():
        follow_changes()
        follow_changes()
    assert sorted(event["data"]["id"] for event in receiver.get()) == sorted(posts)


def test_without_webhooks_a_post_and_a_comment_read_nothing_of_them(alice, statements):
    statements.clear()
    alice.add_comment(alice.create_post("x"), "y")
    assert not [sql for sql in statements if "webhook" in sql]


class TestFailures:
    @pytest.mark.parametrize(
        "failure",
        [
            (Answer(500, None), "The webhook answers 500"),
            (Answer(302, None), "The webhook answers 302"),
            (OSError(110, "Connection timed out"), "Connection timed out"),
            (NotPublicError(13, "The address is not a public one"), "The address is not a public"),
        ],
    )
    def test_an_event_is_sent_again(self, alice, owner, receiver, add, failure):
        webhook = add("post.created")
        alice.create_post("x")
        receiver.answer, error = failure
        receiver.get()
        [failed, _] = deliveries(owner, webhook)
        assert (failed["state"], failed["attempts"], failed["delivered_at"]) == ("waiting", 1, None)
        assert failed["error"].startswith(error)
        assert owner.get(f"/webhooks/{webhook['id']}").json["failing_since"]
        receiver.answer = Answer(200, None)
        assert receiver.get() == []
        [event] = receiver.get(minutes=2)
        assert event["data"]["title"] == "x"
        assert receiver.requests[-1][2]["webhook-id"] == failed["id"]
        [sent, _] = deliveries(owner, webhook)
        assert (sent["state"], sent["attempts"], sent["error"]) == ("delivered", 2, None)
        assert sent["status"] == 200
        assert owner.get(f"/webhooks/{webhook['id']}").json["failing_since"] is None

    def test_a_webhook_that_fails_waits_with_all_of_its_events(self, alice, receiver, add):
        add("post.created")
        add("post.created", url=f"{URL}/2")
        for number in range(5):
            alice.create_post(f"Number {number}")
        receiver.answer = Answer(500, None)
        receiver.get()
        assert len(receiver.requests) == 2 + 2
        receiver.get(minutes=2)
        assert len(receiver.requests) == 4 + 2
        receiver.answer = Answer(204, None)
        assert receiver.get(minutes=3) == []  # it waits for as long as it has failed
        assert len(receiver.get(minutes=10)) == 2 * 5

    def test_old_failures_do_not_count(self, alice, owner, receiver, add):
        """Two requests that fail within three weeks end nothing, and neither does the clock."""
        webhook = add("post.created")
        receiver.answer = Answer(500, None)
        for days in (0, 21):
            with shifted_clock(days=days):
                post = alice.create_post("x")
            receiver.get(days=days)
            with shifted_clock(days=days):
                alice.delete(f"/posts/{post['id']}")
        assert owner.get(f"/webhooks/{webhook['id']}").json["ended_at"] is None

    def test_an_operator_tries_again_at_once(self, app, alice, receiver, add):
        add("post.created")
        alice.create_post("x")
        receiver.answer = Answer(503, 3600)
        receiver.get()
        receiver.answer = Answer(204, None)
        assert app.test_cli_runner().invoke(args=["outbox", "retry"]).exit_code == 0
        assert len(receiver.get()) == 1

    def test_what_an_operator_drops_has_failed(self, app, alice, owner, receiver, add):
        webhook = add("post.created")
        alice.create_post("x")
        receiver.answer = Answer(500, None)
        receiver.get()
        [delivery, _] = deliveries(owner, webhook)
        assert app.test_cli_runner().invoke(args=["outbox", "drop", delivery["id"]]).exit_code == 0
        assert deliveries(owner, webhook)[0]["state"] == "failed"

    def test_what_a_busy_database_does_not_note_is_repeated(
        self, alice, receiver, add, monkeypatch
    ):
        add("post.created")
        alice.create_post("x")

        def fail(*_):
            raise sa.exc.OperationalError("x", {}, Exception("database is locked"))

        with monkeypatch.context() as patched:
            patched.setattr("posting.webhooks.store.note_success", fail)
            assert len(receiver.get()) == 1
        assert len(receiver.get(minutes=2)) == 1
        *_, first, second = receiver.requests
        assert first[2]["webhook-id"] == second[2]["webhook-id"]

    def test_a_receiver_names_a_longer_pause(self, alice, receiver, add):
        add("post.created")
        alice.create_post("x")
        receiver.answer = Answer(503, 1800)
        receiver.get()
        receiver.answer = Answer(204, None)
        assert receiver.get(minutes=20) == []
        assert len(receiver.get(minutes=31)) == 1

    def test_a_receiver_that_is_gone_ends_the_webhook(self, alice, owner, receiver, add):
        webhook = add("post.created")
        alice.create_post("x")
        alice.create_post("y")
        receiver.answer = Answer(410, None)
        assert len(receiver.get()) == 1
        receiver.answer = Answer(204, None)
        alice.create_post("z")
        assert receiver.get(minutes=10) == []
        assert owner.get(f"/webhooks/{webhook['id']}").json["ended_at"]
        states = [each["state"] for each in deliveries(owner, webhook)]
        assert states == ["failed", "failed", "delivered"]

    def test_a_webhook_that_fails_for_five_days_ends(self, alice, owner, receiver, add):
        webhook = add("post.created")
        receiver.answer = Answer(500, None)
        for day in range(7):
            alice.create_post(f"Day {day}")
            receiver.get(days=day)
            has_ended = owner.get(f"/webhooks/{webhook['id']}").json["ended_at"] is not None
            assert has_ended == (day >= 5)

    def test_an_event_is_given_up_after_two_days(self, alice, owner, receiver, add):
        webhook = add("post.created")
        alice.create_post("x")
        receiver.answer = Answer(500, None)
        receiver.get()
        receiver.answer = Answer(204, None)
        assert receiver.get(days=3) == []
        with shifted_clock(days=3):
            assert deliveries(owner, webhook)[0]["state"] == "failed"

    def test_an_event_that_has_arrived_is_not_sent_again(self, app, alice, receiver, add):
        """Such as after a kill of the process before it deletes the row of the outbox."""
        add("post.created")
        alice.create_post("x")
        assert len(receiver.get()) == 1
        with app.app_context(), unit_of_work():
            [delivery] = execute(
                sa.text("SELECT id FROM deliveries WHERE event = 'post.created'")
            ).scalars()
            add_rows(WEBHOOK, [{"id": delivery, "kind": "post.created"}])
        assert receiver.get() == []


class TestNothingIsSent:
    @pytest.mark.parametrize("change", ["role = 'member'", "suspended_at = created_at"])
    def test_of_who_is_no_owner(self, alice, receiver, add, owner, change):
        """What happened in that time is not sent later."""
        app = owner.application
        add()
        update(app, owner, change)
        alice.create_post("x")
        assert receiver.get() == []
        update(app, owner, "role = 'owner', suspended_at = NULL")
        assert receiver.get() == []
        alice.create_post("y")
        assert len(receiver.get()) == 1

    def test_of_what_was_to_be_sent_before(self, app, alice, receiver, add, owner):
        add()
        alice.create_post("x")
        receiver.answer = Answer(500, None)
        receiver.get()
        receiver.answer = Answer(204, None)
        update(app, owner, "role = 'member'")
        assert receiver.get(minutes=2) == []

    def test_of_a_deleted_account(self, alice, receiver, add, owner, app):
        add()
        alice.create_post("x")
        with app.app_context(), unit_of_work():
            execute(sa.text("DELETE FROM users WHERE id = :id"), id=owner.user["id"])
        assert receiver.get() == []

    def test_of_a_deleted_webhook(self, alice, receiver, add, owner):
        webhook = add()
        alice.create_post("x")
        assert owner.delete(f"/webhooks/{webhook['id']}").status_code == 204
        assert receiver.get() == []
        problem = assert_problem(owner.get(f"/webhooks/{webhook['id']}"), 404)
        assert problem["code"] == "no_such_webhook"


def update(app, client, change):
    with app.app_context(), unit_of_work():
        execute(sa.text(f"UPDATE users SET {change} WHERE id = :id"), id=client.user["id"])


def test_a_service_can_turn_webhooks_off(make_app, owner, bob, receiver, add):
    add()
    app = make_app(WEBHOOKS="off")
    client = app.test_client()
    client.set_cookie("session", owner.session_token)
    body = PASSWORD_BODY | {"url": URL, "events": ["post.created"]}
    assert assert_problem(client.post("/webhooks", json=body), 409)["code"] == "no_webhooks"
    reporter = app.test_client()
    reporter.set_cookie("session", bob.session_token)
    reason = {"reason": "Why?"}
    path = f"/users/{owner.user['id']}/reports"
    assert reporter.post(path, json=reason).status_code == 201
    with app.app_context():
        deliver_now()
        assert count_waiting() == 0
    assert len(receiver.requests) == 1


def test_only_who_knows_the_password_creates_one(owner):
    body = {"url": URL, "events": ["post.created"], "current_password": "another walk"}
    [error] = assert_problem(owner.post("/webhooks", json=body), 422)["errors"]
    assert error["pointer"] == "/current_password"


def test_after_a_long_pause_it_goes_on_from_now(app, alice, receiver, add):
    add("post.created")
    alice.create_post("Lost")
    with app.app_context(), unit_of_work():
        execute(sa.text("UPDATE webhooks SET cursor = '0123456789abcdef.0.1'"))
    assert receiver.get() == []
    alice.create_post("Found")
    assert [event["data"]["title"] for event in receiver.get()] == ["Found"]


def test_a_moderator_has_ten_webhooks(owner, add):
    for _ in range(10):
        add("post.created")
    body = PASSWORD_BODY | {"url": URL, "events": ["post.created"]}
    problem = assert_problem(owner.post("/webhooks", json=body), 409)
    assert problem["code"] == "too_many_webhooks"


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("url", "http://chat.example.net/", "malformed"),
        ("url", "https://user@chat.example.net/", "malformed"),
        ("url", "https://chat.example.net/#part", "malformed"),
        ("url", "https://chat..example.net/", "malformed"),
        ("url", "https://chat.example.net/" + "x" * 1000, "too_long"),
        ("events", [], "too_short"),
        ("events", ["post.created", "post.created"], "repeated"),
        ("events", ["post.invented"], "not_a_choice"),
        ("events", "post.created", "wrong_type"),
        ("events", None, "null"),
    ],
)
def test_other_webhooks_are_refused(owner, name, value, code):
    body = PASSWORD_BODY | {"url": URL, "events": ["post.created"]} | {name: value}
    response = owner.post("/webhooks", json=body)
    assert response.status_code == 422, response.text
    errors = [(error["pointer"].split("/")[1], error["code"]) for error in response.json["errors"]]
    assert (name, code) in errors
    assert {pointer for pointer, _ in errors} == {name}


def test_a_private_address_gets_nothing(app, owner, listen):
    server = listen()
    body = PASSWORD_BODY | {"url": f"https://localhost:{server.port}/", "events": ["post.created"]}
    webhook = owner.post("/webhooks", json=body).json
    with app.app_context():
        deliver_now()
    assert server.connections == 0
    [delivery] = deliveries(owner, webhook)
    assert delivery["error"] == "The address is not a public one"


def test_an_http_receiver_of_a_private_address(make_app, posting_owner):
    """A real one, which the operator allows by a setting."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.rfile.read(int(self.headers["Content-Length"])), dict(self.headers)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    app = make_app(WEBHOOKS="all")
    client = app.test_client()
    client.set_cookie("session", posting_owner.session_token)
    body = PASSWORD_BODY | {
        "url": f"http://127.0.0.1:{server.server_port}/x",
        "events": ["post.created"],
    }
    webhook = client.post("/webhooks", json=body)
    assert webhook.status_code == 201, webhook.text
    with app.app_context():
        deliver_now()
    server.shutdown()
    server.server_close()
    [(sent, headers)] = got
    event = Webhook(webhook.json["secret"]).verify(sent, headers)
    assert event["data"] == {"id": webhook.json["id"]}
