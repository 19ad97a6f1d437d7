"""Requests that are sent again, with an Idempotency-Key."""

from datetime import timedelta
from io import BytesIO

import pytest
import sqlalchemy as sa

from posting.db.engine import db
from posting.db.models import Comment, IdempotencyKey, Image, Post
from posting.db.types import now
from posting.schemas.fields import IMAGES_PER_POST
from tests.conftest import POSTGRES
from tests.helpers import pictures
from tests.helpers.assertions import faults, problem

KEY = "8e03978e-40d5-43dd-bc93-6894a57f9324"
MODELS = {"posts": Post, "comments": Comment, "images": Image}


def keyed(key=KEY):
    return {"Idempotency-Key": key}


@pytest.fixture(params=MODELS)
def kind(request):
    return request.param


@pytest.fixture
def send(alice, post, kind):
    """Send a request that creates something of each kind; `number` makes it another one."""

    def send(client=alice, number=0, headers=None, post=post):
        headers = keyed() if headers is None else headers
        if kind == "posts":
            body = {"title": f"Title {number}", "content": "Some text."}
            return client.post("/posts", json=body, headers=headers)
        if kind == "comments":
            body = {"content": f"Comment {number}"}
            return client.post(f"/posts/{post['id']}/comments", json=body, headers=headers)
        form = {"file": (BytesIO(pictures.png()), "a.png"), "alt": f"Image {number}"}
        return client.post(f"/posts/{post['id']}/images", data=form, headers=headers)

    return send


@pytest.fixture
def made(app, post, kind):
    """Count what was created beside the fixture's post."""

    def made():
        with app.app_context():
            count = db.session.scalar(sa.select(sa.func.count(MODELS[kind].id)))
        return count - (kind == "posts")

    return made


def same_answer(one, two):
    assert (one.status_code, one.data) == (two.status_code, two.data) == (201, two.data)

    def headers(answer):
        return {name: value for name, value in answer.headers.items() if name != "X-Request-ID"}

    assert headers(one) == headers(two)


def test_what_is_sent_again_is_not_done_again(send, made):
    first = send()
    for _ in range(3):
        same_answer(send(), first)
    assert made() == 1


def test_without_a_key_it_is(send, made):
    for _ in range(2):
        assert send(headers={}).status_code == 201
    assert made() == 2


def test_the_same_key_for_something_else_is_refused(send, made):
    send()
    assert faults(send(number=1)) == {"Idempotency-Key"}
    assert made() == 1


def test_the_same_body_elsewhere_is_something_else(alice, send, made, kind):
    other = alice.create_post("Another")
    if kind != "posts":
        send()
        assert faults(send(post=other)) == {"Idempotency-Key"}
        assert made() == 1


def test_keys_are_each_users_own(alice, sign_in, kind, made):
    for client in (alice, sign_in("zoe")):
        own = client.create_post("Own")
        bodies = {
            "posts": ("/posts", {"json": {"title": "x", "content": "y"}}),
            "comments": (f"/posts/{own['id']}/comments", {"json": {"content": "x"}}),
            "images": (
                f"/posts/{own['id']}/images",
                {"data": {"file": (BytesIO(pictures.png()), "a")}},
            ),
        }
        path, body = bodies[kind]
        assert client.post(path, headers=keyed(), **body).status_code == 201
    assert made() == (4 if kind == "posts" else 2)


def test_the_first_answer_is_given_even_if_what_it_made_has_changed(alice, send, kind):
    first = send()
    path = f"/{kind}/{first.json['id']}"
    change = {"posts": {"title": "New"}, "comments": {"content": "New"}, "images": {"alt": "New"}}
    assert alice.patch(path, json=change[kind]).status_code == 200
    same_answer(send(), first)
    assert alice.delete(path).status_code == 204
    same_answer(send(), first)


def test_a_refusal_is_not_kept(alice, post, made, kind, send):
    path = {"posts": "/posts"}.get(kind, f"/posts/{post['id']}/{kind}")
    if kind == "images":
        faults(alice.post(path, data={"file": (BytesIO(b"x"), "a")}, headers=keyed()))
    else:
        faults(alice.post(path, json={"content": ""}, headers=keyed()))
    assert send().status_code == 201
    assert made() == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "ä", "\x7f", "a\tb"])
def test_a_malformed_key_is_told_with_all_else(alice, send, made, key):
    assert faults(send(headers=keyed(key))) == {"Idempotency-Key"}
    answer = alice.post("/posts", json={"title": ""}, headers=keyed(key))
    assert faults(answer) == {"Idempotency-Key", "/title", "/content"}
    assert made() == 0


@pytest.mark.parametrize("key", ["!", "~" * 255, '"quoted"', "W/,;=\\"])
def test_any_visible_text_is_a_key(send, made, key):
    same_answer(send(headers=keyed(key)), send(headers=keyed(key)))
    assert made() == 1


def test_a_picture_is_the_same_whatever_its_form_looks_like(alice, post):
    """Clients draw a new boundary for each try, and may name the file otherwise."""
    answers = [
        alice.post(
            f"/posts/{post['id']}/images",
            data={"file": (BytesIO(pictures.png()), name)},
            headers=keyed(),
        )
        for name in ("a.png", "b.jpg")
    ]
    same_answer(*answers)
    other = {"file": (BytesIO(pictures.png(compress_level=0)), "a.png")}
    answer = alice.post(f"/posts/{post['id']}/images", data=other, headers=keyed())
    assert faults(answer) == {"Idempotency-Key"}


def age(app, hours):
    with app.app_context():
        old = now() - timedelta(hours=hours)
        db.session.execute(sa.update(IdempotencyKey).values(created_at=old))
        db.session.commit()


def kept(app):
    with app.app_context():
        return set(db.session.scalars(sa.select(IdempotencyKey.key)))


def test_a_key_is_good_for_a_day(app, send, made):
    first = send()
    age(app, 23.9)
    same_answer(send(), first)
    age(app, 24.1)
    assert send(number=1).status_code == 201
    assert made() == 2


def test_old_keys_are_swept_by_whoever_uses_one(app, alice, bob):
    def post(client, key):
        body = {"title": "x", "content": "y"}
        assert client.post("/posts", json=body, headers=keyed(key)).status_code == 201

    for number in range(5):
        post(alice, f"old-{number}")
    age(app, 25)
    post(bob, "new")
    assert kept(app) == {"new"}


def test_old_keys_are_swept_at_sign_in_too(app, alice, send, sign_in):
    """What they keep of deleted posts is gone in a day, also where nobody uses keys any more."""
    send()
    age(app, 25)
    sign_in("bob")
    assert kept(app) == set()


def test_nobody_who_has_swept_waits_for_another(send, statements):
    """Two who had swept each other's keys, and then waited for those, would wait for good."""
    send()
    sweeping = [sql for sql in statements if "idempotency_keys" in sql and "LIMIT" in sql]
    storing = [sql for sql in statements if sql.startswith("INSERT INTO idempotency_keys")]
    assert statements.index(sweeping[0]) > statements.index(storing[0])


def test_an_old_key_may_be_used_again_however_many_older_ones_there_are(app, alice, monkeypatch):
    monkeypatch.setattr("posting.db.purge.MAX_ROWS", 1)
    body = {"title": "x", "content": "y"}
    for key in ("a", "b", "c"):
        alice.post("/posts", json=body, headers=keyed(key))
    age(app, 25)
    assert alice.post("/posts", json=body, headers=keyed("c")).status_code == 201
    assert "c" in kept(app)


def test_keys_go_with_their_account(app, alice, send):
    send()
    alice.delete(f"/users/{alice.user['id']}")
    assert kept(app) == set()


def test_nothing_is_made_when_the_key_cannot_be_kept(app, send, made, monkeypatch):
    def fail(*_):
        raise RuntimeError("a test")

    monkeypatch.setattr("posting.http.idempotency.purge_expired", fail)
    with pytest.raises(RuntimeError, match="a test"):
        send()
    assert made() == 0


@pytest.fixture
def overtaken(monkeypatch):
    """Do something twice: the second one begins before, and looks for the key before, the first."""

    def overtaken(act):
        first = []

        def faster(*_):
            monkeypatch.undo()
            first.append(act())

        monkeypatch.setattr("posting.http.idempotency._find", faster)
        second = act()
        return first[0], second

    return overtaken


def test_one_that_was_faster_is_answered_for(send, made, overtaken):
    same_answer(*overtaken(send))
    assert made() == 1


def test_so_it_is_where_nothing_more_can_be_made(alice, post, overtaken):
    for _ in range(IMAGES_PER_POST - 1):
        alice.add_image(post)

    def add_the_last():
        form = {"file": (BytesIO(pictures.png()), "a.png")}
        return alice.post(f"/posts/{post['id']}/images", data=form, headers=keyed())

    same_answer(*overtaken(add_the_last))


@pytest.mark.skipif(not POSTGRES, reason="SQLite's one writer is waited for")
def test_one_that_is_still_under_way_is_told(alice, send, made, short_lock_timeout):
    with short_lock_timeout.connect() as other:
        row = {
            "user_id": alice.user["id"],
            "key": KEY,
            "fingerprint": "",
            "body": "",
            "headers": {},
        }
        other.execute(sa.insert(IdempotencyKey).values(row))
        problem(send(), 409)
        other.rollback()
    assert made() == 0
    assert send().status_code == 201
