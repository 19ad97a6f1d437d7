"""Password hashes, and limits on guessing and hashing."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import NamedTuple

from flask import current_app, g
from werkzeug.exceptions import ServiceUnavailable
from werkzeug.security import check_password_hash, generate_password_hash

from posting.accounts import store
from posting.accounts.current_user import get_own_account
from posting.config import worker_threads
from posting.db.transactions import Row, unit_of_work
from posting.web.errors import Coded, InvalidInput, Message, NotSignedIn
from posting.web.hosts import client_ip
from posting.web.limits import Counts, Hits, Limit, require_space
from posting.web.logs import audit

WRONG_PASSWORD = Message("wrong_password", "This is not your current password.")
ACCOUNT_LIMIT = Limit("signin", "LIMIT_SIGNIN", counts=Counts.FAILURES)
ADDRESS_LIMIT = Limit("signin-address", "LIMIT_SIGNIN", counts=Counts.FAILURES, times=5)
# A right password counts too, because it takes as long to check as a wrong one.
ACCOUNT_USE_LIMIT = Limit("passwords", "LIMIT_PASSWORDS")
ADDRESS_USE_LIMIT = Limit("passwords-address", "LIMIT_PASSWORDS", times=5)

MAX_WAIT_SECONDS = 5
_holders: list[tuple[str, ...]] = []  # the clients of the requests that have a place
_lock = Lock()
# A hash takes 32 MiB and a core; more of them at once would only slow down other requests.
_cores = BoundedSemaphore(os.cpu_count() or 1)


class PasswordsBusy(Coded, ServiceUnavailable):
    error_code = "busy"
    description = "Too many passwords are being checked; try again."

    def __init__(self) -> None:
        super().__init__(retry_after=1)


class VerifiedAccount(NamedTuple):
    """An account as it was when its password was checked, and the hash that it shall have."""

    user: Row
    password_hash: str


def count_places() -> int:
    """Return how many requests of this process may hash or wait to do so: half of its threads."""
    return max(1, worker_threads() // 2)


@contextmanager
def place_to_hash(*clients: str) -> Iterator[None]:
    """Hold a place for a request that hashes, for clients such as an address and a member.

    No client can take the last place, so that it cannot keep all others out. Raise PasswordsBusy at
    once if there is no place.
    """
    places = count_places()
    with _lock:
        most = max(sum(client in holder for holder in _holders) for client in clients)
        if len(_holders) >= places or most >= max(1, places - 1):
            raise PasswordsBusy
        _holders.append(clients)
    try:
        yield
    finally:
        with _lock:
            _holders.remove(clients)


@contextmanager
def core_to_hash() -> Iterator[None]:
    """Wait until this request may hash, with a place from `place_to_hash`.

    A unit of work must not be open while it waits. Raise PasswordsBusy if the wait takes too long.
    """
    if not _cores.acquire(timeout=MAX_WAIT_SECONDS):
        raise PasswordsBusy
    try:
        yield
    finally:
        _cores.release()


@contextmanager
def guess(account: str, hits: Hits, *, by_owner: bool = False) -> Iterator[None]:
    """Wait until a guess may be checked, and count it. Check it in the block.

    `account` is the id of the account or the name that was sent. `by_owner` says that the account
    itself sends the guess. It is counted by client, and by client and account, before it is
    checked, so that concurrent guesses are counted too. For a right guess, call `accept_guess` in
    the block. So a right guess counts as a wrong one only while it is checked.

    Raise 429 after too many guesses or right passwords, before this waits, and PasswordsBusy.
    """
    address = client_ip()
    guesses = (ADDRESS_LIMIT, address), (ACCOUNT_LIMIT, f"{address} {account}")
    require_space(*guesses, (ADDRESS_USE_LIMIT, address), (ACCOUNT_USE_LIMIT, account))
    with place_to_hash(address, *([account] if by_owner else [])), core_to_hash():
        hits.count_before(*guesses)
        yield


def accept_guess(account: str, hits: Hits) -> None:
    """Count a guess as a right one instead of a wrong one, in a unit of work of its own."""
    with unit_of_work():
        hits.refund()
        hits.count((ADDRESS_USE_LIMIT, client_ip()), (ACCOUNT_USE_LIMIT, account))


def hash_password(password: str) -> str:
    """Return the salted scrypt hash of a password. A request does this in `core_to_hash`."""
    return generate_password_hash(password, current_app.config["PASSWORD_HASH"])


def verify_password(user: Row | None, password: str) -> Row | None:
    """Return `user` if `password` is the password of this account. Do this within `guess`.

    This takes the same time whether there is such an account or not.
    """
    known = user.password_hash if user else dummy_hash()
    if not check_password_hash(known, password) or user is None:
        return None
    g.user_id = user.id
    return user


def verify_own_password(body: dict[str, str], hits: Hits, **_others: object) -> None:
    """Check the `current_password` of the current user, in the `prepare` of an endpoint."""
    user = get_own_account()
    with guess(user.id, hits, by_owner=True):
        if not verify_password(user, body["current_password"]):
            audit("password-refused")
            raise InvalidInput.at("/current_password", WRONG_PASSWORD)
        accept_guess(user.id, hits)


def current_hash(user: Row, password: str) -> str:
    """Return the hash of the user's own password with the parameters of the settings."""
    stored: str = user.password_hash
    is_current = stored.startswith(current_app.config["PASSWORD_HASH"] + "$")
    return stored if is_current else hash_password(password)


def lock_verified_account(user: Row) -> Row:
    """Lock an account's row and return it as it is now.

    Raise 401 if the account is gone, or its password is no longer the one that was verified.
    """
    locked = store.lock_account(user.id)
    if locked is None or locked.password_hash != user.password_hash:
        raise NotSignedIn
    return locked


def dummy_hash() -> str:
    """Return a hash that no password has, and that takes as long to check as others."""
    parameters = current_app.config["PASSWORD_HASH"]
    return f"{parameters}${secrets.token_urlsafe(12)}${secrets.token_hex(64)}"
