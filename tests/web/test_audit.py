"""The audit log: security events with user and address, never a secret."""

import json
import logging

import pytest
import sqlalchemy as sa
from flask.logging import default_handler

from posting.db.base import db
from posting.web import logs
from posting.web.logs import audit
from tests.conftest import PASSWORD, TOKEN

CREDENTIALS = {"username": "alice", "password": PASSWORD}
AGENT = {"User-Agent": "forged\nline", "X-Request-ID": "find-me"}


@pytest.fixture
def events(caplog):
    """Return the events since the last call, parsed from JSON."""
    caplog.set_level(logging.INFO, "posting")

    def events():
        lines = [json.loads(logs.JsonFormatter().format(record)) for record in caplog.records]
        caplog.clear()
        return [line for line in lines if line["logger"] == "posting.audit"]

    return events


def summaries(events):
    return [(event["event"], event.get("user")) for event in events]


def test_sign_in_and_sign_out_are_logged(app, alice, events):
    events()
    client = app.test_client()
    client.post("/signin", json=CREDENTIALS, environ_base={"REMOTE_ADDR": "203.0.113.7"})
    client.post("/signout")
    client.post("/signout")
    logged = events()
    assert summaries(logged) == [("sign-in", alice.user["id"]), ("sign-out", alice.user["id"])]
    assert logged[0]["address"] == "203.0.113.7"
    assert logged[0]["request_id"]


def test_failed_sign_ins_are_logged_without_the_input(app, alice, events):
    events()
    client = app.test_client()
    for name in ("alice", "my-password-by-mistake"):
        client.post("/signin", json={"username": name, "password": "not the password"})
    logged = events()
    assert summaries(logged) == [("sign-in-failed", alice.user["id"]), ("sign-in-failed", None)]
    assert "password" not in json.dumps(logged)


def test_a_deletion_that_cannot_be_committed_is_not_logged(app, moderator, post, events):
    def fail(_connection):
        raise sa.exc.OperationalError("COMMIT", {}, Exception("no"))

    events()
    with app.app_context():
        engine = db.engine
    sa.event.listen(engine, "commit", fail)
    assert moderator.delete(f"/posts/{post['id']}").status_code >= 500
    sa.event.remove(engine, "commit", fail)
    assert events() == []
    assert moderator.delete(f"/posts/{post['id']}").status_code == 204
    assert summaries(events()) == [("moderation", moderator.user["id"])]


def test_a_refused_sign_in_names_the_suspended_user(flask, app, alice, events):
    flask("users", "suspend", "alice")
    events()
    app.test_client().post("/signin", json=CREDENTIALS)
    assert summaries(events()) == [("refused", alice.user["id"])]


def test_changes_of_an_account_are_logged(alice, events):
    events()
    path = f"/users/{alice.user['id']}"
    alice.patch(path, json={"bio": "x"})
    alice.patch(path, json={"password": "another walk by the sea", "current_password": PASSWORD})
    alice.patch(path, json={"password": "a third walk by the sea", "current_password": "wrong one"})
    alice.delete(path)
    user = alice.user["id"]
    assert summaries(events()) == [
        ("password-changed", user),
        ("password-refused", user),
        ("account-deleted", user),
    ]


def test_sign_up_is_logged(app, events):
    response = app.test_client().post("/signup", json=CREDENTIALS | {"username": "newcomer"})
    assert summaries(events()) == [("sign-up", response.json["id"])]


def test_refusals_are_logged(alice, bob, post, events):
    events()
    bob.delete(f"/posts/{post['id']}")
    alice.post("/posts", json={}, headers={"Origin": "https://evil.example"})
    logged = events()
    assert [event["event"] for event in logged] == ["refused", "refused"]
    assert (logged[0]["user"], logged[0]["endpoint"]) == (bob.user["id"], "posts.delete_post")
    assert logged[1]["endpoint"] == "posts.create_post"


def test_a_reached_limit_is_logged(make_app, events):
    client = make_app(RATE_LIMITS="on", LIMIT_SIGNUP="1/hour").test_client()
    for name in ("one", "two"):
        client.post("/signup", json={"username": name, "password": PASSWORD})
    [_, logged] = events()
    assert (logged["event"], logged["endpoint"]) == ("limit-reached", "auth.sign_up")


def test_moderation_is_logged(moderator, post, events):
    events()
    moderator.delete(f"/posts/{post['id']}")
    [logged] = events()
    assert (logged["event"], logged["user"]) == ("moderation", moderator.user["id"])
    assert logged["act"] == "deleted"
    assert post["id"] in logged["target"]


@pytest.mark.parametrize(
    ("act", "line"),
    [
        ("deleted", "event=moderation act=deleted"),
        ("password reset", 'event=moderation act="password reset"'),
        ('deleted" user="admin', "event=moderation act=\"deleted' user='admin\""),
    ],
)
def test_values_with_spaces_are_quoted(events, caplog, act, line):
    audit("moderation", act=act)
    assert caplog.messages == [line]
    assert events()[0]["act"] == act


@pytest.mark.parametrize("form", ["text", "json"])
def test_input_cannot_forge_a_line(make_app, form, capsys):
    app = make_app(LOG_FORMAT=form, PROXY_HOPS=1)
    app.logger.addHandler(default_handler)
    forged = "203.0.113.7\n2026-11-21T09:30:00.125Z INFO [x] sign-in user=admin"
    environ = {"HTTP_X_FORWARDED_FOR": forged, "HTTP_USER_AGENT": forged}
    body = {"username": "alice\nadmin", "password": "a secret\nthing"}
    app.test_client().post("/signin", json=body, environ_overrides=environ)
    [line] = [line for line in capsys.readouterr().err.splitlines() if "sign-in" in line]
    assert "sign-in-failed" in line
    assert "admin" not in line
    assert "secret" not in line


def test_tokens_are_logged_by_their_ids(alice, events):
    events()
    token = alice.post("/tokens", json=TOKEN).json
    alice.delete(f"/tokens/{token['id']}")
    assert [(event["event"], event["token"]) for event in events()] == [
        ("token-created", token["id"]),
        ("token-deleted", token["id"]),
    ]


def test_no_line_contains_a_secret(app, alice, caplog):
    caplog.set_level(logging.DEBUG)
    client = app.test_client()
    client.post("/signin", json=CREDENTIALS)
    token = client.get_cookie("session").value
    path = f"/users/{alice.user['id']}"
    secret_token = client.post("/tokens", json=TOKEN).json["token"]
    bearer = {"Authorization": f"Bearer {secret_token}"}
    assert app.test_client().get("/users/me", headers=bearer).status_code == 200
    client.patch(path, json={"password": "another walk by the sea", "current_password": PASSWORD})
    client.post("/posts", json={"title": "a title", "content": "the content"})
    client.post("/signout")
    logged = caplog.text + json.dumps([logs.JsonFormatter().format(r) for r in caplog.records])
    for secret in (
        token,
        secret_token,
        PASSWORD,
        "another walk by the sea",
        "a title",
        "the content",
    ):
        assert secret not in logged
