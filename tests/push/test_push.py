"""Notifications on devices: subscriptions, encryption, and push services that fail."""

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from datetime import timedelta
from secrets import token_bytes

import http_ece
import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02

from posting.accounts.models import Session
from posting.db import transactions
from posting.db.transactions import execute, unit_of_work
from posting.db.types import now
from posting.notifications.telling import tell_of_comment
from posting.outbound import Answer, NotPublicError
from posting.outbox.delivery import deliver_now
from posting.push import encryption
from posting.testbed import PASSWORD
from tests.helpers.clock import shifted_clock
from tests.helpers.moderation import report, suspend

URL = "https://push.example.net/send/"


def decoded(text):
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encoded(data):
    return urlsafe_b64encode(data).decode().rstrip("=")


class Device:
    """A browser: it subscribes, and decrypts what its push service gets."""

    def __init__(self, name="phone"):
        self.endpoint = f"{URL}{name}"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._secret = token_bytes(16)

    def subscription(self):
        point = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        keys = {"p256dh": encoded(point), "auth": encoded(self._secret)}
        return {"endpoint": self.endpoint, "expirationTime": None, "keys": keys}

    def add_to(self, client):
        response = client.put("/push/subscriptions", json=self.subscription())
        assert (response.status_code, response.data) == (204, b"")

    def read(self, body):
        text = http_ece.decrypt(
            body, private_key=self._key, auth_secret=self._secret, version="aes128gcm"
        )
        return json.loads(text)


class PushService:
    """What push services get and answer, by the URL of the device."""

    def __init__(self, app):
        self._app = app
        self.sent = []
        self.answers = {}
        self.seconds = {}  # that they take
        self.time = 0.0

    def post(self, url, body, headers):
        self.time += self.seconds.get(url, 0)
        answer = self.answers.get(url, 201)
        if isinstance(answer, Exception):
            raise answer
        assert transactions._unit.get() is None  # nothing is locked while the network waits
        self.sent.append((url, body, headers))
        return Answer(answer, None)

    def deliver(self, **later):
        """Send what is due now, or later. Return the new requests: URL, body and headers."""
        before = len(self.sent)
        with self._app.app_context(), shifted_clock(**later):
            deliver_now()
        return self.sent[before:]


@pytest.fixture
def service(app, monkeypatch):
    service = PushService(app)
    monkeypatch.setattr("posting.push.channel.post", service.post)
    monkeypatch.setattr("posting.push.channel.monotonic", lambda: service.time)
    return service


def retry(client):
    """Let the operator retry what waits."""
    result = client.application.test_cli_runner().invoke(args=["outbox", "retry"])
    assert result.exit_code == 0, result.output


@pytest.fixture
def phone(alice):
    device = Device()
    device.add_to(alice)
    return device


def test_the_example_of_the_standard():
    """RFC 8291, appendix A."""
    number = int.from_bytes(decoded("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
    body = encryption.encrypt(
        b"When I grow up, I want to be a watermelon",
        p256dh="BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcx"
        "aOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        auth="BTBZMqHH6r4Tts7J_aSIgg",
        sender=ec.derive_private_key(number, ec.SECP256R1()),
        salt=decoded("DGv6ra1nlYgDCS1FRnbzlw"),
    )
    assert encoded(body) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml"
        "mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT"
        "pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


def test_a_comment_is_pushed_to_the_author_of_the_post(phone, post, bob, service):
    comment = bob.add_comment(post, "And *cloth*?")
    [(url, body, headers)] = service.deliver()
    assert url == phone.endpoint
    assert headers["TTL"] == "86400"
    assert headers["Content-Encoding"] == "aes128gcm"
    assert b"cloth" not in body
    message = phone.read(body)
    assert re.fullmatch("[A-Za-z0-9_-]{21}", message.pop("tag"))
    assert message == {
        "title": "bob commented on “On engines”.",
        "body": "And cloth?",
        "path": f"/p/{post['id']}?comment={comment['id']}#c-{comment['id']}",
    }
    assert service.deliver() == []


def test_a_push_is_in_the_language_of_the_member(phone, post, alice, bob, service):
    for language, words in (
        ("de", "bob hat „On engines“ kommentiert."),
        (None, "bob commented on “On engines”."),
    ):
        change = alice.patch("/users/me/notifications", json={"language": language})
        assert change.status_code == 200
        bob.add_comment(post, "And *cloth*?")
        service.deliver()
        _url, body, _headers = service.sent[-1]
        assert phone.read(body)["title"] == words


def test_the_request_is_signed_with_the_key_that_browsers_know(phone, post, alice, bob, service):
    key = alice.get("/push/key").json["key"]
    assert len(urlsafe_b64decode(key + "=")) == 65
    bob.add_comment(post, "x")
    [(_, _, headers)] = service.deliver()
    token, sent = re.fullmatch("vapid t=(.*),k=(.*)", headers["Authorization"]).groups()
    assert sent == key
    assert Vapid02.verify(f"vapid t={token},k={sent}")
    claims = json.loads(urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["aud"] == "https://push.example.net"
    assert claims["sub"].startswith("mailto:")


@pytest.mark.parametrize(
    "url", ["https://example.org:8443", "https://example.org/community", "https://intranet"]
)
def test_every_public_url_can_be_the_contact(make_app, alice, bob, monkeypatch, url):
    service = PushService(make_app(PUBLIC_URL=url))
    monkeypatch.setattr("posting.push.channel.post", service.post)
    Device().add_to(alice)
    bob.add_comment(alice.create_post("On engines"), "x")
    [(_, _, headers)] = service.deliver()
    claims = headers["Authorization"].partition("t=")[2].split(".")[1]
    assert json.loads(decoded(claims))["sub"] == url


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://push.example.net:443/x", "https://push.example.net"),
        ("https://Push.example.net:/x", "https://push.example.net"),
        ("https://push.example.net:8443/x", "https://push.example.net:8443"),
    ],
)
def test_the_signature_is_for_the_origin_of_the_push_service(url, origin):
    key = encryption.sign("A" * 42 + "E", url, "https://example.org")
    assert json.loads(decoded(key.partition("t=")[2].split(".")[1]))["aud"] == origin


def test_a_push_arrives_encrypted_over_https(alice, bob, post, listen, monkeypatch):
    """The request as the push service of a browser gets it."""
    monkeypatch.setattr("posting.outbound.is_public", lambda _address: True)  # this machine
    server, device = listen(), Device()
    device.endpoint = f"https://localhost:{server.port}/send/phone"
    device.add_to(alice)
    bob.add_comment(post, "And cloth?")
    with bob.application.app_context():
        deliver_now()
    [request] = server.requests
    head, _, body = request.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /send/phone HTTP/1.1\r\n")
    assert b"cloth" not in request
    assert device.read(body)["body"] == "And cloth?"


@pytest.mark.parametrize("webhooks", ["public", "all"])
def test_a_private_address_gets_no_push(make_app, alice, bob, listen, webhooks):
    """Not even where webhooks may have such addresses."""
    app, server, device = make_app(WEBHOOKS=webhooks), listen(), Device()
    device.endpoint = f"https://localhost:{server.port}/"
    device.add_to(alice)
    bob.add_comment(alice.create_post("On engines"), "x")
    with app.app_context():
        deliver_now()
    assert server.connections == 0


def test_the_key_stays_the_same(alice, bob):
    assert alice.get("/push/key").json == bob.get("/push/key").json


def test_all_devices_of_a_member_get_it_and_no_others(phone, alice, bob, post, service):
    laptop, of_bob = Device("laptop"), Device("other")
    laptop.add_to(alice)
    of_bob.add_to(bob)
    bob.add_comment(post, "x")
    assert sorted(url for url, _, _ in service.deliver()) == [laptop.endpoint, phone.endpoint]


def test_a_device_gets_the_notifications_of_who_added_it_last(phone, bob, post, service):
    phone.add_to(bob)
    bob.add_comment(post, "x")
    assert service.deliver() == []


def test_a_device_that_is_removed_gets_nothing(phone, alice, bob, post, service):
    path = f"/push/subscriptions?endpoint={phone.endpoint}"
    assert bob.delete(path).status_code == 204  # which is not theirs
    bob.add_comment(post, "x")
    assert len(service.deliver()) == 1
    assert alice.delete(path).status_code == 204
    bob.add_comment(post, "y")
    assert service.deliver() == []


def test_all_devices_can_be_removed_at_once(phone, alice, bob, post, service):
    Device("laptop").add_to(alice)
    assert alice.delete("/push/subscriptions").status_code == 204
    bob.add_comment(post, "x")
    assert service.deliver() == []


def test_a_member_has_ten_devices_at_most(alice, bob, post, service):
    for number in range(12):
        Device(str(number)).add_to(alice)
    bob.add_comment(post, "x")
    assert len(service.deliver()) == 10


class TestNotSent:
    def test_what_was_read(self, phone, alice, bob, post, service):
        comment = bob.add_comment(post, "x")
        alice.put(
            f"/posts/{post['id']}/seen", json={"up_to": comment["id"], "shown": [comment["id"]]}
        )
        assert service.deliver() == []

    def test_what_was_deleted(self, phone, bob, post, service):
        comment = bob.add_comment(post, "x")
        bob.delete(f"/comments/{comment['id']}")
        assert service.deliver() == []

    def test_what_was_muted(self, phone, alice, bob, post, service):
        bob.add_comment(post, "x")
        alice.put(f"/posts/{post['id']}/subscription", json={"level": "muted"})
        assert service.deliver() == []

    @pytest.mark.usefixtures("phone")
    def test_to_a_member_who_was_suspended(self, alice, bob, post, service, moderator):
        bob.add_comment(post, "x")
        suspend(moderator, alice)
        assert service.deliver() == []

    def test_to_a_moderator_who_was_demoted(self, app, bob, post, moderator, service):
        desk = Device("desk")
        desk.add_to(moderator)
        report(bob, "post", post)
        code = app.test_cli_runner().invoke(args=["users", "demote", moderator.user["username"]])
        assert code.exit_code == 0, code.output
        [(_, body, _)] = service.deliver()
        assert desk.read(body)["title"] == "The operator made morgan a member."

    def test_of_what_rolls_back(self, phone, bob, post, service, monkeypatch):
        def tell_and_fail(*arguments):
            tell_of_comment(*arguments)
            raise ZeroDivisionError

        monkeypatch.setattr("posting.comments.store.tell_of_comment", tell_and_fail)
        with suppress(ZeroDivisionError):
            bob.post(f"/posts/{post['id']}/comments", json={"content": "x"})
        assert service.deliver() == []

    def test_after_the_session_has_ended(self, phone, alice, bob, post, service):
        """Such as that of a phone that was lost."""
        [session] = alice.get("/sessions").json
        laptop = alice.application.test_client()
        credentials = {"username": "alice", "password": PASSWORD}
        assert laptop.post("/signin", json=credentials).status_code == 200
        assert laptop.delete(f"/sessions/{session['id']}").status_code == 204
        bob.add_comment(post, "x")
        assert service.deliver() == []

    def test_after_the_session_was_idle_for_long(self, phone, alice, bob, post, service):
        app = bob.application
        with app.app_context(), unit_of_work():
            execute(sa.update(Session).values(last_seen_at=now() - timedelta(days=40)))
        assert alice.get("/users/me").status_code == 401
        with app.app_context(), unit_of_work():
            own = Session.user_id == bob.user["id"]
            execute(sa.update(Session).where(own).values(last_seen_at=now()))
        bob.add_comment(post, "x")
        assert service.deliver() == []

    def test_to_a_member_who_wants_none(self, phone, alice, bob, post, service):
        alice.patch("/users/me/notifications", json={"push": False})
        bob.add_comment(post, "x")
        assert service.deliver() == []

    def test_to_a_deleted_account(self, phone, alice, bob, post, service):
        bob.add_comment(post, "x")
        alice.delete("/users/me")
        assert service.deliver() == []

    def test_more_of_a_text_than_the_member_has_chosen(self, phone, alice, bob, post, service):
        alice.patch("/users/me/notifications", json={"text": "link"})
        bob.add_comment(post, "And cloth?")
        [(_, body, _)] = service.deliver()
        assert phone.read(body)["body"] == ""


def test_without_devices_a_comment_adds_nothing(app, alice, bob, post, statements):
    statements.clear()
    bob.add_comment(post, "x")
    assert not [sql for sql in statements if "INTO outbox" in sql]


def test_a_very_long_text_fits_into_a_push(phone, alice, bob, service):
    post = alice.create_post("🧵" * 200)
    bob.patch("/users/me", json={"display_name": "🧵" * 64})
    bob.add_comment(post, "🧵" * 10_000)
    [(_, body, _)] = service.deliver()
    assert len(body) <= 4096
    assert phone.read(body)["title"].startswith("🧵")


class TestFailures:
    @pytest.mark.parametrize("answer", [404, 410, NotPublicError(13, "Not public")])
    def test_a_device_that_is_gone_is_forgotten(self, phone, bob, post, service, answer):
        service.answers[phone.endpoint] = answer
        bob.add_comment(post, "x")
        service.deliver()
        service.answers.clear()
        bob.add_comment(post, "y")
        assert service.deliver() == []

    @pytest.mark.parametrize("answer", [401, 403, 429, 500, 503, 302, OSError(110, "Timed out")])
    def test_a_push_service_that_fails_is_tried_again(self, phone, bob, post, service, answer):
        service.answers[phone.endpoint] = answer
        bob.add_comment(post, "x")
        service.deliver()
        service.answers.clear()
        retry(bob)
        [(_, body, _)] = service.deliver()
        assert phone.read(body)["body"] == "x"

    def test_a_device_that_fails_waits(self, phone, bob, post, service):
        """Its push service, which could be anybody's, costs seconds once a minute or less."""
        service.answers[phone.endpoint] = 500
        for number in range(5):
            bob.add_comment(post, f"Number {number}")
        assert len(service.deliver()) == 1
        assert service.deliver() == []
        assert len(service.deliver(minutes=2)) == 1
        service.answers.clear()
        assert len(service.deliver(minutes=10)) == 5

    def test_a_device_that_is_gone_does_not_count(self, phone, alice, bob, post, service):
        """The other one gets it later, since none has shown it."""
        laptop = Device("laptop")
        laptop.add_to(alice)
        service.answers |= {phone.endpoint: 410, laptop.endpoint: 503}
        bob.add_comment(post, "x")
        service.deliver()
        service.answers.clear()
        assert [url for url, _, _ in service.deliver(minutes=2)] == [laptop.endpoint]

    def test_a_device_that_waits_gets_it_if_the_others_are_gone(
        self, phone, alice, bob, post, service
    ):
        service.answers[phone.endpoint] = 503
        bob.add_comment(post, "one")
        service.deliver()
        laptop = Device("laptop")
        laptop.add_to(alice)
        service.answers[laptop.endpoint] = 410
        bob.add_comment(post, "two")
        service.deliver()
        service.answers.clear()
        sent = service.deliver(minutes=10)
        assert sorted(phone.read(body)["body"] for _, body, _ in sent) == ["one", "two"]

    @pytest.mark.parametrize(
        "url", ["https://[2606:4700::1111]/x", "https://push.example.net:99/x", f"{URL}:/x"]
    )
    def test_an_odd_url_does_not_concern_other_devices(self, phone, alice, bob, service, url):
        odd = Device()
        odd.endpoint = url
        odd.add_to(alice)
        bob.add_comment(alice.create_post("On engines"), "x")
        assert [url for url, _, _ in service.deliver()].count(phone.endpoint) == 1
        assert service.deliver(minutes=10) == []

    def test_a_busy_database_does_not_concern_other_devices(
        self, phone, alice, bob, service, monkeypatch
    ):
        laptop = Device("laptop")
        laptop.add_to(alice)
        service.answers |= {phone.endpoint: 500, laptop.endpoint: 500}
        bob.add_comment(alice.create_post("On engines"), "x")

        def fail(_device):
            raise sa.exc.OperationalError("UPDATE", {}, Exception("database is locked"))

        monkeypatch.setattr("posting.push.store.note_failure", fail)
        assert len(service.deliver()) == 2

    def test_slow_push_services_of_a_member_let_others_be_first(
        self, phone, alice, bob, post, service
    ):
        """A push that is taken after some seconds is no failure, but costs the others time."""
        of_bob = Device("other")
        of_bob.add_to(bob)
        service.seconds[phone.endpoint] = 2
        for number in range(3):
            bob.add_comment(post, f"Number {number}")
        alice.add_comment(bob.create_post("On looms"), "x")
        assert [url for url, _, _ in service.deliver()] == [phone.endpoint, of_bob.endpoint]
        service.time += 11
        assert [url for url, _, _ in service.deliver(seconds=11)] == [phone.endpoint]
        retry(bob)  # which waits for nothing
        assert [url for url, _, _ in service.deliver(seconds=12)] == [phone.endpoint]

    def test_while_a_member_waits_nothing_is_written(self, phone, bob, post, service, statements):
        """All that waits for a member waits together."""
        service.seconds[phone.endpoint] = 2
        for number in range(5):
            bob.add_comment(post, f"Number {number}")
        service.deliver()
        service.time += 5
        statements.clear()
        assert service.deliver(seconds=5) == []
        assert not [sql for sql in statements if sql.startswith("UPDATE")]

    def test_a_member_with_many_devices_is_not_slow(self, phone, alice, bob, post, service):
        for number in range(4):
            Device(str(number)).add_to(alice)
        for name in ("phone", *range(4)):
            service.seconds[f"{URL}{name}"] = 0.19
        for number in range(2):
            bob.add_comment(post, f"Number {number}")
        assert len(service.deliver()) == 10

    def test_slow_devices_of_a_member_share_ten_seconds(self, phone, alice, bob, post, service):
        devices = [phone, *(Device(str(number)) for number in range(3))]
        for device in devices:
            device.add_to(alice)
            service.seconds[device.endpoint] = 6
            service.answers[device.endpoint] = 500
        bob.add_comment(post, "x")
        assert len(service.deliver()) == 2
        service.time += 600
        for device in devices[2:]:
            service.answers[device.endpoint] = 201
        sent = [url for url, _, _ in service.deliver(minutes=10)]
        assert sent == [each.endpoint for each in devices[2:]]  # those that have not failed

    def test_what_was_read_after_a_failure_is_not_sent(self, phone, alice, bob, post, service):
        service.answers[phone.endpoint] = 500
        comment = bob.add_comment(post, "x")
        assert len(service.deliver()) == 1
        body = {"up_to": comment["id"], "shown": [comment["id"]]}
        assert alice.put(f"/posts/{post['id']}/seen", json=body).status_code == 200
        assert service.deliver(minutes=10) == []

    def test_a_device_that_works_gets_it_once(self, phone, alice, bob, post, service):
        laptop = Device("laptop")
        laptop.add_to(alice)
        service.answers[laptop.endpoint] = 500
        bob.add_comment(post, "x")
        assert len(service.deliver()) == 2
        assert service.deliver(minutes=10) == []

    def test_a_device_that_fails_for_weeks_is_forgotten(self, phone, bob, post, service):
        service.answers[phone.endpoint] = 500
        for hours in range(0, 16 * 24, 12):
            bob.add_comment(post, "x")
            service.deliver(hours=hours)
        service.answers.clear()
        bob.add_comment(post, "y")
        assert service.deliver(days=17) == []

    def test_a_key_that_is_no_point_is_forgotten(self, alice, bob, post, service):
        body = Device().subscription()
        body["keys"]["p256dh"] = "BA" + "A" * 85
        assert alice.put("/push/subscriptions", json=body).status_code == 204
        bob.add_comment(post, "x")
        assert service.deliver() == []
        bob.add_comment(post, "y")
        assert service.deliver() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("endpoint", "http://push.example.net/"),
        ("endpoint", "https://user@push.example.net/"),
        ("endpoint", "https://push.example.net/" + "x" * 1000),
        ("endpoint", 7),
        ("keys", None),
        ("keys", {}),
        ("keys", {"p256dh": "x", "auth": "A" * 22}),
        ("keys", {"p256dh": "B" + "A" * 86, "auth": "x"}),
    ],
)
def test_other_subscriptions_are_refused(alice, name, value):
    response = alice.put("/push/subscriptions", json=Device().subscription() | {name: value})
    assert response.status_code == 422
    for error in response.json["errors"]:
        assert error["pointer"].startswith(f"/{name}")


def test_only_a_session_adds_a_device(anonymous, writer):
    body = Device().subscription()
    assert anonymous.put("/push/subscriptions", json=body).status_code == 401
    assert writer.put("/push/subscriptions", json=body).status_code == 403
