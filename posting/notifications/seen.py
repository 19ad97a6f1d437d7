"""The SQL of the comments that members have seen. It marks notifications about them as read."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from posting.comments.models import Comment
from posting.db.base import Identifier, db, upsert
from posting.db.purge import purge_expired
from posting.db.transactions import execute, fetch_all, fetch_one
from posting.db.types import Rfc3339Text, UtcDateTime, now
from posting.notifications.models import CONVERSATION, REACTION, Notification, Seen
from posting.notifications.schemas import MAX_NEW
from posting.notifications.store import unlocked
from posting.posts.models import DELETED_POSTS, Post
from posting.web.errors import InvalidInput, Message
from posting.web.schemas import Item, to_items

NOT_ON_POST = Message("no_such_comment", "Must be a comment on this post.")

_POST = sa.bindparam("post", type_=Identifier)
_READER = sa.bindparam("reader", type_=Identifier)
_IS_IT = sa.and_(Seen.post_id == _POST, Seen.user_id == _READER)
_SEEN = sa.select(Seen.up_to, Seen.until, sa.type_coerce(Seen.until, Rfc3339Text()).label("text"))
_SEEN = _SEEN.where(_IS_IT)
_ON_POST = sa.and_(Comment.post_id == _POST, Comment.content.is_not(None))
_LATEST = sa.select(Comment.id).where(_ON_POST)
_LATEST = _LATEST.order_by(Comment.created_at.desc(), Comment.id.desc()).limit(1)
_NEW = (
    sa.select(Comment.id)
    .where(
        _ON_POST,
        sa.tuple_(Comment.created_at, Comment.id)
        > sa.tuple_(
            sa.bindparam("until", type_=UtcDateTime()), sa.bindparam("up_to", type_=Identifier)
        ),
        Comment.author_id.is_distinct_from(_READER),
    )
    .order_by(Comment.created_at, Comment.id)
    .limit(MAX_NEW)
)
# The same for several posts. No more new comments are counted than one post lists.
_new_since = (
    sa.select(Comment.id)
    .where(
        Comment.post_id == Seen.post_id,
        Comment.content.is_not(None),
        sa.tuple_(Comment.created_at, Comment.id)
        > sa.tuple_(Seen.until, sa.func.coalesce(Seen.up_to, "")),
        Comment.author_id.is_distinct_from(_READER),
    )
    .order_by(Comment.created_at, Comment.id)
    .correlate(Seen)
)
_COUNT_NEW = (
    sa.select(
        Seen.post_id.label("id"),
        sa.select(sa.func.count())
        .select_from(_new_since.limit(MAX_NEW).subquery())
        .scalar_subquery()
        .label("new"),
        _new_since.limit(1).scalar_subquery().label("first"),
    )
    .where(
        Seen.user_id == _READER,
        Seen.post_id.in_(sa.bindparam("posts", expanding=True)),
        Seen.post_id.not_in(DELETED_POSTS),
    )
    .order_by(Seen.post_id)
)
# The post is locked against its deletion, by a lock that readers share.
_KEEP_POST = (
    sa.select(Post.created_at)
    .where(Post.id == _POST, Post.deleted_at.is_(None))
    .with_for_update(read=True, key_share=True)
)
_FORMER = sa.select(Seen.until, Seen.up_to).where(_IS_IT)
_TIME_OF_COMMENT = sa.select(Comment.created_at).where(
    Comment.post_id == _POST, Comment.id == sa.bindparam("comment", type_=Identifier)
)
_place = sa.tuple_(Comment.created_at, Comment.id)


def _place_of(name: str) -> sa.Tuple:
    """Return the place of a comment among those on its post, as two parameters."""
    time = sa.bindparam(f"{name}_time", type_=UtcDateTime())
    return sa.tuple_(time, sa.bindparam(f"{name}_id", type_=Identifier))


_is_seen_comment = sa.exists().where(
    Comment.id == Notification.comment_id,
    Comment.post_id == _POST,
    sa.or_(
        sa.and_(_place > _place_of("former"), _place <= _place_of("new")),
        Comment.id.in_(sa.bindparam("shown", expanding=True)),
    ),
)
_is_unread = sa.and_(Notification.user_id == _READER, Notification.read_at.is_(None))
_is_about_post = sa.or_(
    Notification.post_id == _POST,
    sa.exists().where(Comment.id == Notification.comment_id, Comment.post_id == _POST),
)
_UNREAD = (
    sa.select(Notification.id)
    .where(_is_unread, Notification.kind.in_((*CONVERSATION, REACTION)), _is_about_post)
    .limit(1)
)
_READ_NOTIFICATIONS = (
    sa.update(Notification)
    .where(
        unlocked(
            _is_unread,
            sa.or_(
                sa.and_(
                    Notification.kind.in_(CONVERSATION),
                    sa.or_(Notification.post_id == _POST, _is_seen_comment),
                ),
                sa.and_(Notification.kind == REACTION, _is_about_post),
            ),
        )
    )
    .values(read_at=sa.bindparam("time", type_=UtcDateTime()))
)


def get_seen(user_id: str, post_id: str) -> Item:
    """Return how far a user has read a post, and what is new since or not read."""
    seen = fetch_one(_SEEN, post=post_id, reader=user_id)
    latest = fetch_one(_LATEST, post=post_id)
    new: Sequence[Any] = ()
    if seen:
        place = {"until": seen.until, "up_to": seen.up_to or ""}
        new = fetch_all(_NEW, post=post_id, reader=user_id, **place)
    return {
        "up_to": seen and seen.up_to,
        "until": seen and seen.text,
        "latest": latest and latest.id,
        "new": [row.id for row in new],
        "unread": fetch_one(_UNREAD, post=post_id, reader=user_id) is not None,
    }


def count_new(user_id: str, post_ids: Sequence[str]) -> list[Item]:
    """Return how many comments are new to a user, for those of some posts that they have seen."""
    return to_items(fetch_all(_COUNT_NEW, reader=user_id, posts=list(post_ids)))


def find_time_for_update(post_id: str) -> Any | None:
    """Keep a post from being deleted meanwhile, and return when it was written, or None."""
    post = execute(_KEEP_POST, post=post_id).one_or_none()
    return post and post.created_at


def set_seen(
    user_id: str, post_id: str, written_at: Any, up_to: str | None, shown: Sequence[str]
) -> None:
    """Note that a user has read a post up to a comment, unless they have read more of it.

    This also reads the notifications about the post, about the comments since the former place,
    about the comments `shown`, and about reactions to the post and to all of its comments. At the
    first visit there is no former place: then everything counts as seen, but only what was shown is
    read. Raise 422 if `up_to` is not a comment on the post.
    """
    until = written_at
    if up_to:
        comment = fetch_one(_TIME_OF_COMMENT, post=post_id, comment=up_to)
        if comment is None:
            raise InvalidInput.at("/up_to", NOT_ON_POST)
        until = comment.created_at
    new = (until, up_to or "")
    former = fetch_one(_FORMER, post=post_id, reader=user_id)
    former_time, former_id = (former.until, former.up_to or "") if former else new
    time = now()
    values = {"post_id": post_id, "user_id": user_id, "up_to": up_to, "until": until}
    execute(_upsert(db.engine.dialect.name), **values, seen_at=time)
    execute(
        _READ_NOTIFICATIONS,
        **{"post": post_id, "reader": user_id, "shown": list(shown), "time": time},
        **{"former_time": former_time, "former_id": former_id},
        **{"new_time": until, "new_id": new[1]},
    )
    purge_expired(Notification)
    purge_expired(Seen)


@cache
def _upsert(dialect: str) -> Any:
    statement = upsert(Seen, dialect)
    excluded = statement.excluded
    return statement.on_conflict_do_update(
        index_elements=[Seen.post_id, Seen.user_id],
        set_={"up_to": excluded.up_to, "until": excluded.until, "seen_at": excluded.seen_at},
        where=sa.tuple_(Seen.until, sa.func.coalesce(Seen.up_to, ""))
        < sa.tuple_(excluded.until, sa.func.coalesce(excluded.up_to, "")),
    )
