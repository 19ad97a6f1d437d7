"""Requests that hash passwords have half of the threads, and one client has not all of these."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import BoundedSemaphore, Event, Semaphore

import pytest

from posting.accounts import passwords
from posting.accounts.passwords import PasswordsBusy, core_to_hash, count_places, place_to_hash
from tests.conftest import PASSWORD
from tests.helpers.assertions import assert_problem
from tests.helpers.transactions import is_in_transaction

ELSEWHERE, FURTHER = "198.51.100.9", "203.0.113.7"
NEW_PASSWORD = "another walk by the sea"


@pytest.fixture(autouse=True)
def many_cores(monkeypatch):
    """Let as many requests hash at a time as may wait for it, on any machine."""
    monkeypatch.setattr(passwords, "_cores", BoundedSemaphore(100))


class Requests:
    """Requests that hash until the test ends them."""

    def __init__(self, pool):
        self.pool, self.sent = pool, []
        self.started, self.end = Semaphore(0), Event()

    def check(self, *_):
        self.started.release()
        assert self.end.wait(20)
        return True

    def begin(self, send, count):
        """Send a request several times, and wait until each of them hashes."""
        for _ in range(count):
            self.sent.append(self.pool.submit(send))
            assert self.started.acquire(timeout=20)


@pytest.fixture
def slow(monkeypatch):
    with ThreadPoolExecutor() as pool:
        slow = Requests(pool)
        with monkeypatch.context() as patch:
            patch.setattr(passwords, "check_password_hash", slow.check)
            yield slow
            slow.end.set()
            assert {request.result().status_code for request in slow.sent} <= {200}


def sign_in(app, name, address):
    body = {"username": name, "password": PASSWORD}
    sent_from = {"REMOTE_ADDR": address}
    return app.test_client().post("/signin", json=body, environ_base=sent_from)


def change_password(client, address, path="/users/me"):
    body = {"password": NEW_PASSWORD, "current_password": PASSWORD}
    return client.patch(path, json=body, environ_base={"REMOTE_ADDR": address})


def create_codes(client, address):
    body = {"current_password": PASSWORD}
    return client.post("/recovery-codes", json=body, environ_base={"REMOTE_ADDR": address})


def reset(client, address, **fields):
    body = fields | {"password": NEW_PASSWORD}
    return client.post("/password-resets", json=body, environ_base={"REMOTE_ADDR": address})


def sign_up(client, address):
    body = {"username": "carol", "password": PASSWORD}
    return client.post("/signup", json=body, environ_base={"REMOTE_ADDR": address})


SENDS = {
    "sign-in": lambda client, address: sign_in(client.application, "alice", address),
    "sign-up": sign_up,
    "recovery codes": create_codes,
    "a new password": change_password,
    "a new password by ID": lambda client, address: change_password(
        client, address, f"/users/{client.get('/users/me').json['id']}"
    ),
    "a reset by link": lambda client, address: reset(client, address, code="a" * 64),
    "a reset by code": lambda client, address: reset(
        client, address, username="alice", recovery_code="7G3K-9QWE-2M4X-V8ZA"
    ),
}


@pytest.fixture
def full(alice):
    """All places are taken by several clients."""
    with ExitStack() as stack:
        for number in range(count_places()):
            stack.enter_context(place_to_hash(f"192.0.2.{number}"))
        yield


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("send", SENDS.values(), ids=SENDS)
def test_each_request_that_hashes_gets_503_if_no_place_is_left(make_app, alice, send, monkeypatch):
    """It counts for no limit, and hashes nothing."""
    for name in ("generate_password_hash", "check_password_hash"):
        monkeypatch.setattr(passwords, name, None)
    limits = {f"LIMIT_{name}": "1/hour" for name in ("SIGNIN", "SIGNUP", "PASSWORDS")}
    client = alice.copy(make_app(RATE_LIMITS="on", **limits))
    for _ in range(10):
        response = send(client, ELSEWHERE)
        assert assert_problem(response, 503)["code"] == "busy"
        assert response.headers["Retry-After"] == "1"
    assert client.patch("/users/me", json={"bio": "I weave."}).status_code == 200
    assert client.get("/posts").status_code == 200


def test_an_address_cannot_keep_others_out(app, alice, bob, slow):
    slow.begin(lambda: sign_in(app, "alice", ELSEWHERE), count_places() - 1)
    assert_problem(sign_in(app, "bob", ELSEWHERE), 503)
    slow.begin(lambda: sign_in(app, "bob", FURTHER), 1)
    assert_problem(sign_in(app, "bob", "192.0.2.1"), 503)
    slow.end.set()
    assert slow.sent[-1].result().status_code == 200


def test_a_member_cannot_keep_others_out_by_several_addresses(app, alice, bob, slow):
    addresses = iter(f"192.0.2.{number}" for number in range(100))
    slow.begin(lambda: create_codes(alice.copy(), next(addresses)), count_places() - 1)
    for send in (create_codes, change_password):
        assert_problem(send(alice, next(addresses)), 503)
    slow.begin(lambda: sign_in(app, "bob", FURTHER), 1)
    slow.end.set()
    assert slow.sent.pop().result().status_code == 200
    while slow.sent:
        assert slow.sent.pop().result().status_code == 201


def test_a_place_is_free_again_after_each_request(app, alice):
    for _ in range(2 * count_places()):
        assert sign_in(app, "alice", ELSEWHERE).status_code == 200
        assert_problem(sign_in(app, "nobody", ELSEWHERE), 401)
        assert_problem(SENDS["a reset by link"](alice, ELSEWHERE), 422)
        assert_problem(reset(alice, ELSEWHERE, username="no", recovery_code="a" * 19), 422)
    assert passwords._holders == []


def test_a_wait_for_a_core_ends(app, alice, monkeypatch):
    monkeypatch.setattr(passwords, "_cores", BoundedSemaphore(1))
    monkeypatch.setattr(passwords, "MAX_WAIT_SECONDS", 0.01)
    with core_to_hash():
        assert_problem(sign_in(app, "alice", ELSEWHERE), 503)
    assert sign_in(app, "alice", ELSEWHERE).status_code == 200
    assert passwords._holders == []


def test_right_passwords_that_wait_count_for_no_limit_of_guesses(make_app, alice, monkeypatch):
    monkeypatch.setattr(passwords, "_cores", BoundedSemaphore(1))
    app = make_app(RATE_LIMITS="on", LIMIT_SIGNIN="2/hour")  # one may be checked at a time
    with ThreadPoolExecutor(count_places() - 1) as pool:
        sent = [pool.submit(sign_in, app, "alice", ELSEWHERE) for _ in range(count_places() - 1)]
        assert [request.result().status_code for request in sent] == [200] * len(sent)


def test_no_transaction_is_open_while_a_password_is_hashed(app, alice, bob, monkeypatch):
    hashed = []
    for name in ("generate_password_hash", "check_password_hash"):
        real = getattr(passwords, name)

        def check(*arguments, name=name, real=real):
            hashed.append((name, is_in_transaction(), len(passwords._holders)))
            return real(*arguments)

        monkeypatch.setattr(passwords, name, check)
    assert sign_up(app.test_client(), ELSEWHERE).status_code == 201
    assert sign_in(app, "alice", ELSEWHERE).status_code == 200
    assert change_password(bob, ELSEWHERE).status_code == 200
    [code, *_] = create_codes(alice, ELSEWHERE).json["codes"]
    fields = {"username": "alice", "recovery_code": code}
    assert reset(app.test_client(), ELSEWHERE, **fields).status_code == 200
    names = " ".join(name.partition("_")[0] for name, *_ in hashed)
    assert names == "generate check check generate check generate"
    assert {(is_open, places) for _, is_open, places in hashed} == {(False, 1)}


@pytest.mark.parametrize(("threads", "places"), [("8", 4), ("5", 2), ("4", 2), ("1", 1), ("", 4)])
def test_half_of_the_threads_of_a_worker_may_hash(monkeypatch, threads, places):
    monkeypatch.delenv("WORKER_THREADS", raising=False)
    if threads:
        monkeypatch.setenv("WORKER_THREADS", threads)
    assert count_places() == places
    with ExitStack() as stack:
        for number in range(places):
            stack.enter_context(place_to_hash(f"192.0.2.{number}"))
        with pytest.raises(PasswordsBusy), place_to_hash(ELSEWHERE):
            pass
