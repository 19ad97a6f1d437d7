"""Requests repeated with an Idempotency-Key."""

from datetime import timedelta
from io import BytesIO

import pytest
import sqlalchemy as sa

from posting.accounts.current_user import SIGNED_IN
from posting.accounts.models import Session
from posting.comments.models import Comment
from posting.db.base import db
from posting.db.transactions import transaction
from posting.db.types import now
from posting.images.models import Image
from posting.posts.models import Post
from posting.posts.schemas import IMAGES_PER_POST
from posting.web.endpoint import Blueprint
from posting.web.idempotency import IdempotencyKey
from posting.web.schemas import Input, TimestampInput, Words
from tests.conftest import POSTGRES
from tests.helpers import pictures
from tests.helpers.assertions import assert_problem, error_locations

pytestmark = pytest.mark.usefixtures("cached_codec")
KEY = "8e03978e-40d5-43dd-bc93-6894a57f9324"
MODELS = {"posts": Post, "comments": Comment, "images": Image}
INVALID = {"posts": {"content": ""}, "comments": {"content": ""}, "images": {"file": b"x"}}
CHANGES = {"posts": {"title": "New"}, "comments": {"content": "New"}, "images": {"alt": "New"}}


def keyed(key=KEY):
    return {"Idempotency-Key": key}


@pytest.fixture(params=MODELS)
def kind(request):
    return request.param


@pytest.fixture
def send(alice, post, kind):
    """Return a function that sends a request to create a post, a comment or an image."""

    def send(client=alice, headers=None, post=post, **changes):
        headers = keyed() if headers is None else headers
        if kind == "posts":
            body = {"title": "On looms", "content": "Some text."} | changes
            return client.post("/posts", json=body, headers=headers)
        if kind == "comments":
            body = {"content": "Indeed."} | changes
            return client.post(f"/posts/{post['id']}/comments", json=body, headers=headers)
        form = {"file": pictures.png(), "alt": "A loom"} | changes
        form["file"] = (BytesIO(form["file"]), "a.png")
        return client.post(f"/posts/{post['id']}/images", data=form, headers=headers)

    return send


@pytest.fixture
def count(app, post, kind):
    """Return a function that counts the posts, comments or images created by `send`."""
    model = MODELS[kind]
    number = sa.select(sa.func.count(model.id))
    if kind == "posts":
        number = number.where(Post.title != post["title"])

    def count():
        with app.app_context():
            return db.session.scalar(number)

    return count


def assert_same_response(one, other):
    """Assert that two responses are the same, and that one says that it is replayed."""
    assert (one.status_code, one.data) == (other.status_code, other.data) == (201, other.data)
    headers = [
        {name: value for name, value in response.headers.items() if name != "X-Request-ID"}
        for response in (one, other)
    ]
    assert "true" in {fields.pop("Idempotent-Replayed", None) for fields in headers}
    assert headers[0] == headers[1]


def age_keys(app, hours):
    with app.app_context():
        created_at = now() - timedelta(hours=hours)
        db.session.execute(sa.update(IdempotencyKey).values(created_at=created_at))
        db.session.commit()


def stored_keys(app):
    with app.app_context():
        return set(db.session.scalars(sa.select(IdempotencyKey.key)))


def test_a_repeated_request_gets_the_same_response_and_creates_nothing(send, count):
    first = send()
    assert "Idempotent-Replayed" not in first.headers
    for _ in range(3):
        assert_same_response(send(), first)
    assert count() == 1


def test_a_repeated_request_without_a_key_creates_another_one(send, count):
    for _ in range(2):
        assert send(headers={}).status_code == 201
    assert count() == 2


def test_a_key_with_another_body_gets_422(send, count, kind):
    send()
    assert error_locations(send(**CHANGES[kind])) == {"Idempotency-Key"}
    assert count() == 1


def test_a_key_with_another_url_gets_422(alice, post, send, count, kind):
    send()
    if kind == "posts":
        path = f"/posts/{post['id']}/comments"
        response = alice.post(path, json={"content": "Some text."}, headers=keyed())
    else:
        response = send(post=alice.create_post(post["title"]))
    assert error_locations(response) == {"Idempotency-Key"}
    assert count() == 1


def test_two_users_may_use_the_same_key(post, sign_in, send, count):
    zoe = sign_in("zoe")
    assert send().status_code == 201
    assert send(zoe, post=zoe.create_post(post["title"])).status_code == 201
    assert count() == 2


def test_the_first_response_is_repeated_after_later_changes(alice, send, kind):
    first = send()
    path = f"/{kind}/{first.json['id']}"
    assert alice.patch(path, json=CHANGES[kind]).status_code == 200
    assert_same_response(send(), first)
    assert alice.delete(path).status_code == 204
    assert_same_response(send(), first)


def test_an_error_is_not_stored(send, count, kind):
    assert_problem(send(**INVALID[kind]), 422)
    assert send().status_code == 201
    assert count() == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "ä", "\x7f", "a\tb"])
def test_a_malformed_key_gets_422_with_all_other_errors(alice, send, count, key):
    assert error_locations(send(headers=keyed(key))) == {"Idempotency-Key"}
    response = alice.post("/posts", json={"title": ""}, headers=keyed(key))
    assert error_locations(response) == {"Idempotency-Key", "/title", "/content"}
    assert count() == 0


@pytest.mark.parametrize("key", ["!", "~" * 255, '"quoted"', "W/,;=\\"])
def test_a_key_may_have_any_visible_ascii_characters(send, count, key):
    assert_same_response(send(headers=keyed(key)), send(headers=keyed(key)))
    assert count() == 1


def test_the_boundary_and_the_file_name_do_not_make_another_request(alice, post):
    """Clients choose a new boundary for each attempt, and perhaps another file name."""
    responses = [
        alice.post(
            f"/posts/{post['id']}/images",
            data={"file": (BytesIO(pictures.png()), name)},
            headers=keyed(),
        )
        for name in ("a.png", "b.jpg")
    ]
    assert_same_response(*responses)
    other = {"file": (BytesIO(pictures.png(compress_level=0)), "a.png")}
    response = alice.post(f"/posts/{post['id']}/images", data=other, headers=keyed())
    assert error_locations(response) == {"Idempotency-Key"}


class Appointment(Input):
    at = TimestampInput()


class Details(Input):
    expand = Words("place", "people")


def test_times_and_words_are_compared_by_value(make_app, alice):
    blueprint = Blueprint("extra", __name__, description="Extra")

    @blueprint.post(
        "/extra", access=SIGNED_IN, body=Appointment(), query=Details(), idempotent=True, returns={}
    )
    def create_appointment(body, query):
        return {"at": body["at"].isoformat()}

    app = make_app()
    app.register_blueprint(blueprint)
    client = alice.copy(app)

    def send(at, query="?expand=place,people"):
        return client.post(f"/extra{query}", json={"at": at}, headers=keyed())

    assert send("2026-11-21T09:30:00Z").json == {"at": "2026-11-21T09:30:00+00:00"}
    again = send("2026-11-21T10:30:00+01:00", "?expand=people,place")
    assert again.headers["Idempotent-Replayed"] == "true"
    assert error_locations(send("2026-11-21T09:30:01Z")) == {"Idempotency-Key"}
    assert error_locations(send("2026-11-21T09:30:00Z", "?expand=place")) == {"Idempotency-Key"}


def test_a_key_is_valid_for_a_day(app, send, count, kind):
    first = send()
    age_keys(app, 23.9)
    assert_same_response(send(), first)
    age_keys(app, 24.1)
    assert send(**CHANGES[kind]).status_code == 201
    assert count() == 2


def test_a_request_with_a_key_purges_the_expired_keys_of_all_users(app, alice, bob):
    body = {"title": "x", "content": "y"}
    for number in range(5):
        alice.post("/posts", json=body, headers=keyed(f"old-{number}"))
    age_keys(app, 25)
    assert bob.post("/posts", json=body, headers=keyed("new")).status_code == 201
    assert stored_keys(app) == {"new"}


def test_expired_keys_are_purged_about_once_an_hour_while_a_member_is_active(app, bob, send):
    """The stored responses of deleted posts expire even if no client uses keys any more."""
    send()
    age_keys(app, 25)
    assert bob.get("/users/me").status_code == 200
    assert len(stored_keys(app)) == 1
    with app.app_context():
        db.session.execute(sa.update(Session).values(last_seen_at=now() - timedelta(minutes=61)))
        db.session.commit()
    assert bob.get("/users/me").status_code == 200
    assert stored_keys(app) == set()


def test_expired_keys_are_purged_after_the_new_key_is_stored(send, statements):
    """In the other order, two requests could each wait for a key that the other has purged."""
    send()
    purges = [sql for sql in statements if "idempotency_keys" in sql and "LIMIT" in sql]
    inserts = [sql for sql in statements if sql.startswith("INSERT INTO idempotency_keys")]
    assert statements.index(purges[0]) > statements.index(inserts[0])


def test_an_expired_key_can_be_used_again_before_it_is_purged(app, alice, monkeypatch):
    monkeypatch.setattr("posting.db.purge.MAX_ROWS", 1)
    body = {"title": "x", "content": "y"}
    for key in ("a", "b", "c"):
        alice.post("/posts", json=body, headers=keyed(key))
    age_keys(app, 25)
    assert alice.post("/posts", json=body, headers=keyed("c")).status_code == 201
    assert "c" in stored_keys(app)


def test_keys_are_deleted_with_their_account(app, alice, send):
    send()
    alice.delete(f"/users/{alice.user['id']}")
    assert stored_keys(app) == set()


def test_nothing_is_created_if_the_key_cannot_be_stored(app, send, count, monkeypatch):
    def fail(*_):
        raise RuntimeError("a test")

    monkeypatch.setattr("posting.web.idempotency.purge_expired", fail)
    with pytest.raises(RuntimeError, match="a test"):
        send()
    assert count() == 0


@pytest.fixture
def race(monkeypatch):
    """Return a function that sends two equal requests, of which the second overtakes the first."""

    def race(send):
        faster = []

        def send_faster(*_):
            monkeypatch.undo()
            faster.append(send())

        monkeypatch.setattr("posting.web.idempotency.replay", send_faster)
        slower = send()
        return faster[0], slower

    return race


def test_concurrent_requests_get_the_same_response(send, count, race):
    assert_same_response(*race(send))
    assert count() == 1


def test_concurrent_uploads_get_the_same_response_if_only_one_image_fits(alice, post, race):
    for _ in range(IMAGES_PER_POST - 1):
        alice.add_image(post)

    def add_last_image():
        form = {"file": (BytesIO(pictures.png()), "a.png")}
        return alice.post(f"/posts/{post['id']}/images", data=form, headers=keyed())

    assert_same_response(*race(add_last_image))


@pytest.mark.skipif(not POSTGRES, reason="SQLite has one writer at a time")
@pytest.mark.usefixtures("short_lock_timeout")
def test_a_key_that_another_request_is_using_gets_409(app, alice, send, count):
    row = {"user_id": alice.user["id"], "key": KEY, "fingerprint": "", "body": "", "headers": {}}
    with app.app_context(), transaction() as other:
        other.execute(sa.insert(IdempotencyKey).values(row))
        assert_problem(send(), 409)
        other.rollback()
    assert count() == 0
    assert send().status_code == 201
