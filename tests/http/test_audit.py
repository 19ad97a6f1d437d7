"""Log lines about what concerns security: who, from where, and never a secret."""

import json
import logging

import pytest
from flask.logging import default_handler

from posting import logs
from tests.conftest import PASSWORD

CREDENTIALS = {"username": "alice", "password": PASSWORD}
AGENT = {"User-Agent": "forged\nline", "X-Request-ID": "find-me"}


@pytest.fixture
def events(caplog):
    """Return the events since the last call, as JSON would tell them."""
    caplog.set_level(logging.INFO, "posting")

    def events():
        lines = [json.loads(logs.JsonFormatter().format(record)) for record in caplog.records]
        caplog.clear()
        return [line for line in lines if line["logger"] == "posting.audit"]

    return events


def brief(events):
    return [(event["event"], event.get("user")) for event in events]


def test_sign_in_and_out_are_told(app, alice, events):
    events()
    client = app.test_client()
    client.post("/signin", json=CREDENTIALS, environ_base={"REMOTE_ADDR": "203.0.113.7"})
    client.post("/signout")
    client.post("/signout")
    told = events()
    assert brief(told) == [("sign-in", alice.user["id"]), ("sign-out", alice.user["id"])]
    assert told[0]["address"] == "203.0.113.7"
    assert told[0]["request_id"]


def test_failures_are_told_without_what_was_typed(app, alice, events):
    events()
    client = app.test_client()
    for name in ("alice", "my-password-by-mistake"):
        client.post("/signin", json={"username": name, "password": "not the password"})
    told = events()
    assert brief(told) == [("sign-in-failed", alice.user["id"]), ("sign-in-failed", None)]
    assert "password" not in json.dumps(told)


def test_a_suspended_user_is_named(flask, app, alice, events):
    flask("users", "suspend", "alice")
    events()
    app.test_client().post("/signin", json=CREDENTIALS)
    assert brief(events()) == [("refused", alice.user["id"])]


def test_changes_of_an_account_are_told(alice, events):
    events()
    path = f"/users/{alice.user['id']}"
    alice.patch(path, json={"bio": "x"})
    alice.patch(path, json={"password": "another walk by the sea", "current_password": PASSWORD})
    alice.patch(path, json={"password": "a third walk by the sea", "current_password": "wrong one"})
    alice.delete(path)
    user = alice.user["id"]
    assert brief(events()) == [
        ("password-changed", user),
        ("password-refused", user),
        ("account-deleted", user),
    ]


def test_an_account_is_told(app, events):
    answer = app.test_client().post("/signup", json=CREDENTIALS | {"username": "newcomer"})
    assert brief(events()) == [("sign-up", answer.json["id"])]


def test_refusals_are_told(alice, bob, post, events):
    events()
    bob.delete(f"/posts/{post['id']}")
    alice.post("/posts", json={}, headers={"Origin": "https://evil.example"})
    told = events()
    assert [event["event"] for event in told] == ["refused", "refused"]
    assert (told[0]["user"], told[0]["endpoint"]) == (bob.user["id"], "posts.delete_post")
    assert told[1]["endpoint"] == "posts.create_post"


def test_a_limit_that_is_reached_is_told(make_app, events):
    client = make_app(RATE_LIMITS="on", LIMIT_SIGNUP="1/hour").test_client()
    for name in ("one", "two"):
        client.post("/signup", json={"username": name, "password": PASSWORD})
    [_, told] = events()
    assert (told["event"], told["endpoint"]) == ("limit-reached", "auth.sign_up")


def test_moderation_is_told(moderator, post, events):
    events()
    moderator.delete(f"/posts/{post['id']}")
    [told] = events()
    assert (told["event"], told["user"]) == ("moderation", moderator.user["id"])
    assert told["act"] == "deleted"
    assert post["id"] in told["target"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_nobody_writes_lines_of_their_own(make_app, form, capsys):
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


def test_no_secret_is_in_any_line(app, alice, caplog):
    caplog.set_level(logging.DEBUG)
    client = app.test_client()
    client.post("/signin", json=CREDENTIALS)
    token = client.get_cookie("session").value
    path = f"/users/{alice.user['id']}"
    client.patch(path, json={"password": "another walk by the sea", "current_password": PASSWORD})
    client.post("/posts", json={"title": "a title", "content": "the content"})
    client.post("/signout")
    logged = caplog.text + json.dumps([logs.JsonFormatter().format(r) for r in caplog.records])
    for secret in (token, PASSWORD, "another walk by the sea", "a title", "the content"):
        assert secret not in logged
