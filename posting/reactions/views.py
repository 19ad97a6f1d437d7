"""Reactions to posts and comments."""

from posting.accounts.current_user import (
    SIGNED_IN,
    current_user,
    current_user_id,
    lock_current_user,
)
from posting.comments.store import NoSuchComment
from posting.posts.store import NoSuchPost, post_exists
from posting.reactions import schemas, store
from posting.reactions.models import NAMES
from posting.web.endpoint import Blueprint, Reply
from posting.web.limits import Limit

REACTION_LIMIT = Limit("reactions", "LIMIT_COMMENTS", current_user_id, times=4)
OF_POST = f"/posts/<nanoid:id>/reactions/<any{NAMES}:reaction>"
OF_COMMENT = f"/comments/<nanoid:id>/reactions/<any{NAMES}:reaction>"

reactions = Blueprint("reactions", __name__, description="Reactions to posts and comments")


@reactions.get(
    "/posts/<nanoid:id>/reactions",
    access=SIGNED_IN,
    returns=schemas.OwnReaction(many=True),
    errors=[NoSuchPost],
)
def list_own_reactions(id: str) -> Reply:
    """List your own reactions to a post and to the comments on it: the latest 1,000."""
    if not post_exists(id):
        raise NoSuchPost
    return store.list_own_reactions(current_user.id, id)


@reactions.put(
    OF_POST,
    access=SIGNED_IN,
    limits=[REACTION_LIMIT],
    returns=schemas.Reactions(),
    errors=[NoSuchPost],
)
def react_to_post(id: str, reaction: str) -> Reply:
    """React to a post. This replaces your former reaction to it."""
    lock_current_user()
    return store.add_reaction(store.lock_post(id), current_user.id, reaction)


@reactions.delete(
    OF_POST,
    access=SIGNED_IN,
    limits=[REACTION_LIMIT],
    returns=schemas.Reactions(),
    errors=[NoSuchPost],
)
def remove_reaction_to_post(id: str, reaction: str) -> Reply:
    """Take back your reaction to a post. Nothing changes if you have not reacted so."""
    lock_current_user()
    return store.remove_reaction(store.lock_post(id), current_user.id, reaction)


@reactions.put(
    OF_COMMENT,
    access=SIGNED_IN,
    limits=[REACTION_LIMIT],
    returns=schemas.Reactions(),
    errors=[NoSuchComment],
)
def react_to_comment(id: str, reaction: str) -> Reply:
    """React to a comment. This replaces your former reaction to it."""
    lock_current_user()
    return store.add_reaction(store.lock_comment(id), current_user.id, reaction)


@reactions.delete(
    OF_COMMENT,
    access=SIGNED_IN,
    limits=[REACTION_LIMIT],
    returns=schemas.Reactions(),
    errors=[NoSuchComment],
)
def remove_reaction_to_comment(id: str, reaction: str) -> Reply:
    """Take back your reaction to a comment. Nothing changes if you have not reacted so."""
    lock_current_user()
    return store.remove_reaction(store.lock_comment(id), current_user.id, reaction)
