"""Codes in links: the id of what they are for, and a secret of which the database has a hash."""

import hmac
import secrets

from posting.accounts.sessions import hash_token
from posting.db.types import ID_LENGTH


def new_code(id: str) -> tuple[str, str]:
    """Return a new code with an id, and the hash of its secret."""
    secret = secrets.token_urlsafe(32)
    return id + secret, hash_token(secret)


def split_code(code: str) -> tuple[str, str]:
    """Return the id and the secret of a code that was sent."""
    return code[:ID_LENGTH], code[ID_LENGTH:]


def is_secret(secret: str, secret_hash: str) -> bool:
    """Return whether a hash is that of a secret. The time does not depend on where they differ."""
    return hmac.compare_digest(hash_token(secret), secret_hash)
