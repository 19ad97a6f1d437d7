"""Password hashes, and limits on guessing."""

import os
import secrets
from threading import BoundedSemaphore

import sqlalchemy as sa
from flask import current_app, g
from werkzeug.security import check_password_hash, generate_password_hash

from posting.accounts import queries
from posting.accounts.models import User
from posting.db.transactions import Row, execute
from posting.web.errors import NotSignedIn
from posting.web.limits import Counts, Hits, Limit
from posting.web.messages import Message
from posting.web.middleware.proxy import client_ip

WRONG_PASSWORD = Message("wrong_password", "This is not your current password.")
ACCOUNT_LIMIT = Limit("signin", "LIMIT_SIGNIN", counts=Counts.FAILURES)
ADDRESS_LIMIT = Limit("signin-address", "LIMIT_SIGNIN", counts=Counts.FAILURES, times=5)

# A hash takes 32 MiB and a core; more of them at once would only slow down other requests.
_hashing = BoundedSemaphore(os.cpu_count() or 1)


def hash_password(password: str) -> str:
    """Return the salted scrypt hash of a password. This is slow: hold no transaction."""
    with _hashing:
        return generate_password_hash(password, current_app.config["PASSWORD_HASH"])


def count_guess(account: str, hits: Hits) -> None:
    """Count a guess at an account, by its id or the name that was sent, and commit this.

    It is counted by client, and by client and account, before it is checked, so that concurrent
    guesses are counted too. The caller refunds the hits of a right guess. Raise 429 after too many.
    """
    hits.count((ADDRESS_LIMIT, client_ip()), (ACCOUNT_LIMIT, f"{client_ip()} {account}"))
    hits.commit()


def verify_password(user: Row | None, username: str, password: str, hits: Hits) -> Row | None:
    """Return `user`, the account named `username`, if `password` is its password.

    This takes the same time whether there is such an account or not. It is counted in `hits` as by
    `count_guess`.
    """
    count_guess(user.id if user else username.lower(), hits)
    known = user.password_hash if user else dummy_hash()
    with _hashing:
        matches = check_password_hash(known, password)
    if not matches or user is None:
        return None
    g.user_id = user.id
    return user


def current_hash(user: Row, password: str) -> str:
    """Return the hash of the user's own password with the parameters of the settings."""
    stored: str = user.password_hash
    is_current = stored.startswith(current_app.config["PASSWORD_HASH"] + "$")
    return stored if is_current else hash_password(password)


def store_password_hash(user_id: str, password_hash: str) -> None:
    """Store the hash of a new password. It is no edit, so `updated_at` does not tell others."""
    execute(sa.update(User).where(User.id == user_id), password_hash=password_hash)


def lock_verified_account(user: Row) -> Row:
    """Lock an account's row and return it as it is now.

    Raise 401 if the account is gone, or its password is no longer the one that was verified.
    """
    locked = queries.lock_account(user.id)
    if locked is None or locked.password_hash != user.password_hash:
        raise NotSignedIn
    return locked


def dummy_hash() -> str:
    """Return a hash that no password has, and that takes as long to check as others."""
    parameters = current_app.config["PASSWORD_HASH"]
    return f"{parameters}${secrets.token_urlsafe(12)}${secrets.token_hex(64)}"
