"""The SQL of reactions. The post of a text is locked while its reactions change."""

from functools import cache
from typing import Any

import sqlalchemy as sa

from posting.comments.models import Comment
from posting.comments.store import LOCK_POST_OF_COMMENT, NoSuchComment
from posting.db.base import Identifier, db, upsert
from posting.db.transactions import Row, execute, fetch_all, fetch_value
from posting.db.types import now
from posting.notifications.telling import forget_reaction, tell_of_reaction
from posting.posts.models import DELETED_POSTS, Post
from posting.posts.store import NoSuchPost
from posting.reactions import schemas
from posting.reactions.models import Reaction
from posting.web.schemas import Item, columns, to_items

MAX_LISTED = 1000  # reactions of a member to a post and its comments

_COUNTS = {model: columns(schemas.Reactions, model) for model in (Post, Comment)}
_READ = {
    model: sa.select(*counts).where(model.id == sa.bindparam("text"))
    for model, counts in _COUNTS.items()
}
_POST = (
    sa.select(Post.id.label("post_id"), sa.null().label("comment_id"), Post.author_id)
    .where(Post.id == sa.bindparam("id"), Post.deleted_at.is_(None))
    .with_for_update()
)
_COMMENT = sa.select(Comment.post_id, Comment.id.label("comment_id"), Comment.author_id).where(
    Comment.id == sa.bindparam("id"),
    Comment.content.is_not(None),
    Comment.post_id.not_in(DELETED_POSTS),
)
_KEY = (Reaction.user_id, Reaction.post_id, Reaction.text_id)
_IS_IT = sa.and_(*(column == sa.bindparam(column.key) for column in _KEY))
_NAME = sa.select(Reaction.name).where(_IS_IT)
_OWN = (
    sa.select(Reaction.text_id.label("id"), Reaction.name.label("reaction"))
    .where(Reaction.user_id == sa.bindparam("user"), Reaction.post_id == sa.bindparam("post"))
    .where(Reaction.post_id.not_in(DELETED_POSTS))
    .order_by(Reaction.created_at.desc(), Reaction.text_id)
    .limit(sa.bindparam("limit", type_=sa.Integer()))
)


def lock_post(id: str) -> Row:
    """Lock a post, and return its ids as those of a text. Raise NoSuchPost."""
    post = execute(_POST, id=id).one_or_none()
    if post is None:
        raise NoSuchPost
    return post


def lock_comment(id: str) -> Row:
    """Lock the post of a comment, and return the ids of the comment. Raise NoSuchComment."""
    execute(LOCK_POST_OF_COMMENT, id=id)
    comment = execute(_COMMENT, id=id).one_or_none()
    if comment is None:
        raise NoSuchComment
    return comment


def add_reaction(text: Row, user_id: str, name: str) -> Item:
    """Let a user react to a locked text, and return its counts. A former reaction is replaced."""
    key = _key_of(text, user_id)
    former = fetch_value(_NAME, **key)
    if former == name:
        return _count(text)
    values = {"comment_id": text.comment_id, "name": name, "created_at": now()}
    execute(_upsert(db.engine.dialect.name), **key, **values)
    if former is None:
        tell_of_reaction(text, user_id)
    return _count(text, added=name, removed=former)


def remove_reaction(text: Row, user_id: str, name: str) -> Item:
    """Remove the reaction of a user to a locked text, if it is this one, and return the counts."""
    own = sa.delete(Reaction).where(_IS_IT, Reaction.name == sa.bindparam("former"))
    if not execute(own, **_key_of(text, user_id), former=name).rowcount:
        return _count(text)
    forget_reaction(text, user_id)
    return _count(text, removed=name)


def list_own_reactions(user_id: str, post_id: str) -> list[Item]:
    """Return the latest reactions of a user to a post and to the comments on it."""
    return to_items(fetch_all(_OWN, user=user_id, post=post_id, limit=MAX_LISTED))


def _key_of(text: Row, user_id: str) -> dict[str, str]:
    text_id = text.comment_id or text.post_id
    return {"user_id": user_id, "post_id": text.post_id, "text_id": text_id}


def _count(text: Row, *, added: str | None = None, removed: str | None = None) -> Item:
    """Count a reaction that is added or removed, if any, and return all counts of a text."""
    model = Comment if text.comment_id else Post
    id = text.comment_id or text.post_id
    if added or removed:
        [counts] = to_items(execute(_change(model, added, removed), text=id).all())
    else:
        [counts] = to_items(fetch_all(_READ[model], text=id))
    return counts


@cache
def _change(model: Any, added: str | None, removed: str | None) -> sa.sql.dml.ReturningUpdate[Any]:
    """Return the UPDATE of a post or comment that counts a reaction, and returns the counts."""
    values = {}
    if added:
        values[added] = getattr(model, added) + 1
    if removed:
        values[removed] = getattr(model, removed) - 1
    update = sa.update(model).where(model.id == sa.bindparam("text", type_=Identifier))
    return update.values(values).returning(*_COUNTS[model])


@cache
def _upsert(dialect: str) -> Any:
    statement = upsert(Reaction, dialect)
    new = statement.excluded
    return statement.on_conflict_do_update(
        index_elements=_KEY, set_={"name": new.name, "created_at": new.created_at}
    )
