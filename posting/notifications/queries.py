"""The statements that read notifications and subscriptions, and that find recipients."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import InstrumentedAttribute, aliased

from posting.accounts.models import User
from posting.accounts.schemas import Author
from posting.comments.models import Comment
from posting.db.base import Identifier
from posting.db.transactions import fetch_value
from posting.markdown import BEGINNING, excerpt
from posting.notifications import schemas
from posting.notifications.kinds import COMMENT, MENTION, REPLY
from posting.notifications.models import ALL, MUTED, Notification, Subscription
from posting.posts.models import DELETED_POSTS, Post
from posting.web.rows import Item, columns, nested_columns

_POST = sa.bindparam("post", type_=Identifier)
_ACTOR = sa.bindparam("actor_id", type_=Identifier)

# A notification about what is deleted may be left for a while. Its reader does not see it.
_of_deleted_posts = sa.select(Comment.id).where(Comment.post_id.in_(DELETED_POSTS))
_IS_OWN = Notification.user_id == sa.bindparam("recipient")
_IS_SHOWN = sa.and_(
    sa.or_(Notification.post_id.is_(None), Notification.post_id.not_in(DELETED_POSTS)),
    sa.or_(Notification.comment_id.is_(None), Notification.comment_id.not_in(_of_deleted_posts)),
)
# A notification names its actor, unless this account is pending and its reader is no moderator.
_actor = aliased(User)
_may_see = sa.or_(~_actor.is_pending, sa.bindparam("is_moderator", type_=sa.Boolean()))
NOTIFICATIONS = (
    sa.select(
        *columns(schemas.Notification, Notification, without=["actor", "post", "comment"]),
        *nested_columns("actor", Author, _actor),
        Post.id.label("post"),
        Post.title.label("post.title"),
        Comment.id.label("comment"),
        sa.func.substr(Comment.content, 1, BEGINNING).label("comment.excerpt"),
    )
    .outerjoin(_actor, sa.and_(_actor.id == Notification.actor_id, _may_see))
    .outerjoin(Comment, Comment.id == Notification.comment_id)
    .outerjoin(Post, Post.id == sa.func.coalesce(Notification.post_id, Comment.post_id))
    .where(_IS_OWN, _IS_SHOWN)
)
UNREAD_NOTIFICATIONS = NOTIFICATIONS.where(Notification.read_at.is_(None))
_unread = (
    sa.select(Notification.id)
    .where(_IS_OWN, Notification.read_at.is_(None))
    .limit(schemas.MAX_COUNT)
)


def _count(rows: sa.Select[str]) -> sa.ScalarSelect[int]:
    return sa.select(sa.func.count()).select_from(rows.subquery()).scalar_subquery()


# While no post is being deleted, the index suffices, and no table is read.
_COUNT = sa.select(
    sa.case(
        (sa.exists(DELETED_POSTS.subquery()), _count(_unread.where(_IS_SHOWN))),
        else_=_count(_unread),
    )
)
_LEVEL = sa.select(Subscription.level).where(
    Subscription.post_id == _POST,
    Subscription.post_id.not_in(DELETED_POSTS),
    Subscription.user_id == sa.bindparam("reader"),
)

_is_named = sa.func.lower(User.username).in_(sa.bindparam("names", expanding=True))


def _claim(user_id: InstrumentedAttribute[Any], place: int) -> sa.Select[str, int]:
    """Select users with a place: the lowest place of a user decides what the user is told."""
    number = sa.literal_column(str(place), sa.Integer())
    return sa.select(user_id.label("id"), number.label("place"))


# Each recipient of a comment once, with the kind that concerns them most, but not those who have
# muted the post. A union, because with joins, Postgres takes 7 seconds for 10,000 followers while
# its statistics are old.
_MUTED_PLACE, _KINDS = 0, {1: REPLY, 2: MENTION, 3: COMMENT}
_is_of_post = Subscription.post_id == _POST
_claims = sa.union_all(
    _claim(Subscription.user_id, _MUTED_PLACE).where(_is_of_post, Subscription.level == MUTED),
    _claim(Comment.author_id, 1).where(Comment.id == sa.bindparam("parent", type_=Identifier)),
    _claim(User.id, 2).where(_is_named, ~User.is_pending),
    _claim(Post.author_id, 3).where(Post.id == _POST),
    _claim(Subscription.user_id, 3).where(_is_of_post, Subscription.level == ALL),
).subquery()
_lowest = sa.func.min(_claims.c.place)
RECIPIENTS_OF_COMMENT = (
    sa.select(_claims.c.id, sa.case(_KINDS, value=_lowest).label("kind"))
    .where(_claims.c.id != _ACTOR)
    .group_by(_claims.c.id)
    .having(_lowest > _MUTED_PLACE)
)
# Those whom a text mentions. With an edit, those who were notified of it before are left out.
_has_muted = sa.exists().where(
    _is_of_post, Subscription.user_id == User.id, Subscription.level == MUTED
)
_told = sa.exists().where(Notification.user_id == User.id)
MENTIONED = sa.select(
    User.id, sa.literal(MENTION).label("kind"), sa.func.lower(User.username).label("name")
).where(_is_named, ~User.is_pending, User.id.is_distinct_from(_ACTOR), ~_has_muted)
MENTIONED_IN_COMMENT = MENTIONED.where(
    ~_told.where(Notification.comment_id == sa.bindparam("comment_id"))
)
MENTIONED_IN_POST = MENTIONED.where(
    ~_told.where(Notification.post_id == _POST, Notification.kind == MENTION)
)
MODERATORS = sa.select(User.id, sa.bindparam("kind", type_=Notification.kind.type).label("kind"))
MODERATORS = MODERATORS.where(User.is_moderator, ~User.is_pending, User.id.is_distinct_from(_ACTOR))


def shorten_comments(notifications: list[Item]) -> list[Item]:
    """Turn the beginnings of comments into plain text in one line."""
    for notification in notifications:
        if comment := notification["comment"]:
            comment["excerpt"] = excerpt(comment["excerpt"])
    return notifications


def count_unread(user_id: str) -> int:
    """Return the number of notifications that a user has not read, 100 at most."""
    count: int = fetch_value(_COUNT, recipient=user_id)
    return count


def find_level(user_id: str, post_id: str) -> str | None:
    """Return what a user has chosen about a post, or None if they have not."""
    level: str | None = fetch_value(_LEVEL, reader=user_id, post=post_id)
    return level
