"""Personal access tokens: list, create, delete."""

from typing import Any

from posting.auth import tokens as access_tokens
from posting.auth.login import SESSION_REQUIRED, current_user, lock_current_user, user_id
from posting.db.engine import db
from posting.db.errors import NoSuchToken
from posting.http import audit
from posting.http.endpoint import Blueprint, Reply
from posting.http.rate_limits import Limit
from posting.schemas import tokens as schemas

LIMIT = Limit("tokens", "LIMIT_POSTS", user_id)

tokens = Blueprint("tokens", __name__, description="Tokens by which programs act as a user")


@tokens.get("/tokens", access=SESSION_REQUIRED, returns=schemas.Token(many=True))
def list_tokens() -> Reply:
    """List your tokens, newest first, fifty at most."""
    return access_tokens.list_tokens(current_user.id)


@tokens.post(
    "/tokens",
    access=SESSION_REQUIRED,
    limit=LIMIT,
    body=schemas.TokenInput(),
    status=201,
    returns=schemas.NewToken(),
    errors=[access_tokens.TooManyTokens],
)
def create_token(body: dict[str, Any]) -> Reply:
    """Create a token. Only this response contains it."""
    lock_current_user(exclusively=True)
    token = access_tokens.create_token(current_user.id, **body)
    db.session.commit()
    audit.log("token-created", token=token["id"])
    return token


@tokens.delete("/tokens/<nanoid:id>", access=SESSION_REQUIRED, status=204, errors=[NoSuchToken])
def delete_token(id: str) -> Reply:
    """Delete one of your tokens."""
    if not access_tokens.delete_token(current_user.id, id):
        raise NoSuchToken
    db.session.commit()
    audit.log("token-deleted", token=id)
    return None
