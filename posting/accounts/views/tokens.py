"""Personal access tokens: list, create, read, delete."""

from typing import Any

from posting.accounts import schemas
from posting.accounts import tokens as access_tokens
from posting.accounts.current_user import (
    SESSION_REQUIRED,
    current_user,
    current_user_id,
    lock_current_user,
)
from posting.accounts.tokens import NoSuchToken
from posting.web.endpoint import Blueprint, Reply
from posting.web.etags import Condition, etag_header
from posting.web.hosts import external_url
from posting.web.limits import Limit
from posting.web.logs import audit

TOKEN_LIMIT = Limit("tokens", "LIMIT_POSTS", current_user_id)

tokens = Blueprint("tokens", __name__, description="Tokens by which programs act as a user")


@tokens.get("/tokens", access=SESSION_REQUIRED, returns=schemas.Token(many=True))
def list_tokens() -> Reply:
    """List your tokens, newest first, fifty at most."""
    return access_tokens.list_tokens(current_user.id)


@tokens.post(
    "/tokens",
    access=SESSION_REQUIRED,
    limits=[TOKEN_LIMIT],
    body=schemas.TokenInput(),
    status=201,
    returns=schemas.NewToken(),
    headers=["Location"],
    errors=[access_tokens.TooManyTokens],
)
def create_token(body: dict[str, Any]) -> Reply:
    """Create a token. Only this response contains it."""
    lock_current_user(exclusively=True)
    token = access_tokens.create_token(current_user.id, **body)
    audit("token-created", token=token["id"])
    headers = etag_header({name: token[name] for name in token if name != "token"})
    return token, headers | {"Location": external_url("tokens.get_token", id=token["id"])}


@tokens.get(
    "/tokens/<nanoid:id>", access=SESSION_REQUIRED, returns=schemas.Token(), errors=[NoSuchToken]
)
def get_token(id: str) -> Reply:
    """Read one of your tokens, without its secret."""
    return access_tokens.get_token(current_user.id, id)


@tokens.delete(
    "/tokens/<nanoid:id>",
    access=SESSION_REQUIRED,
    conditional=True,
    status=204,
    errors=[NoSuchToken],
)
def delete_token(id: str, condition: Condition) -> Reply:
    """Delete one of your tokens."""
    condition.require_body(access_tokens.get_token(current_user.id, id))
    if not access_tokens.delete_token(current_user.id, id):
        raise NoSuchToken
    audit("token-deleted", token=id)
    return None
