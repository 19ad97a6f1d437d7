"""The SQL of a member's notifications and subscriptions.

No account of a recipient is locked, and no statement here waits for a locked notification. So
somebody who comments waits for no recipient.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import aliased

from posting.accounts.models import User
from posting.accounts.schemas import Author
from posting.comments.models import Comment
from posting.db.base import Identifier, db, upsert
from posting.db.purge import purge_expired
from posting.db.transactions import execute, fetch_all, fetch_one, fetch_value
from posting.db.types import UtcDateTime, now
from posting.markdown import BEGINNING, excerpt
from posting.notifications import schemas
from posting.notifications.models import MAX_KEPT, Notification, Subscription
from posting.posts.models import DELETED_POSTS, Post
from posting.web.errors import InvalidInput, Message
from posting.web.pagination import Page, paginate
from posting.web.schemas import Item, columns, nested_columns

MAX_DELETED = 100  # notifications of a member at a time
NO_SUCH_NOTIFICATION = Message(
    "no_such_notification", "There is no such notification. Read the list again."
)

# A notification about what is deleted may be left for a while. Its reader does not see it.
_of_deleted_posts = sa.select(Comment.id).where(Comment.post_id.in_(DELETED_POSTS))
IS_OWN = Notification.user_id == sa.bindparam("recipient")
_IS_SHOWN = sa.and_(
    sa.or_(Notification.post_id.is_(None), Notification.post_id.not_in(DELETED_POSTS)),
    sa.or_(Notification.comment_id.is_(None), Notification.comment_id.not_in(_of_deleted_posts)),
)


def may_see(actor: type[User]) -> sa.ColumnElement[bool]:
    """Return the condition that the reader may see an actor: only moderators see who is pending."""
    return sa.or_(~actor.is_pending, sa.bindparam("is_moderator", type_=sa.Boolean()))


_actor = aliased(User)
NOTIFICATIONS = (
    sa.select(
        *columns(schemas.Notification, Notification, without=["actor", "post", "comment"]),
        *nested_columns("actor", Author, _actor),
        Post.id.label("post"),
        Post.title.label("post.title"),
        Comment.id.label("comment"),
        sa.func.substr(Comment.content, 1, BEGINNING).label("comment.excerpt"),
    )
    .outerjoin(_actor, sa.and_(_actor.id == Notification.actor_id, may_see(_actor)))
    .outerjoin(Comment, Comment.id == Notification.comment_id)
    .outerjoin(Post, Post.id == sa.func.coalesce(Notification.post_id, Comment.post_id))
    .where(IS_OWN, Post.deleted_at.is_(None))
)
_UNREAD_NOTIFICATIONS = NOTIFICATIONS.where(Notification.read_at.is_(None))
_unread = (
    sa.select(Notification.id)
    .where(IS_OWN, Notification.read_at.is_(None))
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
    Subscription.post_id == sa.bindparam("post"),
    Subscription.post_id.not_in(DELETED_POSTS),
    Subscription.user_id == sa.bindparam("reader"),
)

_KEY = (Notification.user_id, Notification.created_at, Notification.id)
_place = sa.tuple_(Notification.created_at, Notification.id)
_CREATED_AT = sa.select(Notification.created_at).where(
    IS_OWN, Notification.id == sa.bindparam("notification")
)


def unlocked(
    *conditions: sa.ColumnElement[bool], limit: int | None = None
) -> sa.ColumnElement[bool]:
    """Return the condition that notifications match other conditions and are not locked.

    A CTE, because Postgres may execute a subquery again for each row if its statistics are old.
    """
    keys = sa.select(*_KEY).where(*conditions).limit(limit).with_for_update(skip_locked=True)
    return sa.tuple_(*_KEY).in_(sa.select(keys.cte("unlocked")))


def _place_of(name: str) -> sa.Tuple:
    """Return the place of a notification among those of its recipient, as two parameters."""
    time = sa.bindparam(f"{name}_time", type_=UtcDateTime())
    return sa.tuple_(time, sa.bindparam(f"{name}_id", type_=Identifier))


_MARK_READ = (
    sa.update(Notification)
    .where(unlocked(IS_OWN, Notification.read_at.is_(None), _place <= _place_of("up_to")))
    .values(read_at=sa.bindparam("time", type_=UtcDateTime()))
)
_MARK_SOME_READ = (
    sa.update(Notification)
    .where(
        unlocked(
            IS_OWN,
            Notification.read_at.is_(None),
            Notification.id.in_(sa.bindparam("ids", expanding=True)),
        )
    )
    .values(read_at=sa.bindparam("time", type_=UtcDateTime()))
)
_HAVE_SURPLUS = (
    sa.select(Notification.user_id)
    .where(Notification.user_id.in_(sa.bindparam("recipients", expanding=True)))
    .group_by(Notification.user_id)
    .having(sa.func.count() > MAX_KEPT)
)
_OLDEST_KEPT = (
    sa.select(Notification.created_at, Notification.id)
    .where(IS_OWN)
    .order_by(Notification.created_at.desc(), Notification.id.desc())
    .offset(MAX_KEPT - 1)
    .limit(1)
)
_DELETE_OLDER = sa.delete(Notification).where(
    unlocked(IS_OWN, _place < _place_of("oldest"), limit=MAX_DELETED)
)


def list_notifications(
    user_id: str, *, limit: int, cursor: str | None, is_moderator: bool, unread: bool = False
) -> Page:
    """Return a page of the notifications of a user, or of the `unread` ones, newest first."""
    page = paginate(
        _UNREAD_NOTIFICATIONS if unread else NOTIFICATIONS,
        limit=limit,
        cursor=cursor,
        name="unread_notifications" if unread else "notifications",
        newest_first=True,
        parameters={"recipient": user_id, "is_moderator": is_moderator},
    )
    shorten_excerpts(page.items)
    return page


def shorten_excerpts(notifications: Iterable[Item]) -> None:
    """Replace the beginnings of comments by what is shown of them."""
    for notification in notifications:
        if comment := notification["comment"]:
            comment["excerpt"] = excerpt(comment["excerpt"])


def count_unread(user_id: str) -> int:
    """Return the number of notifications that a user has not read, 100 at most."""
    count: int = fetch_value(_COUNT, recipient=user_id)
    return count


def find_level(user_id: str, post_id: str) -> str | None:
    """Return what a user has chosen about a post, or None if they have not."""
    level: str | None = fetch_value(_LEVEL, reader=user_id, post=post_id)
    return level


def delete_surplus(user_ids: Sequence[str]) -> None:
    """Delete what members have beyond the newest thousand notifications, a hundred of each."""
    for (user_id,) in fetch_all(_HAVE_SURPLUS, recipients=user_ids):
        if oldest := fetch_one(_OLDEST_KEPT, recipient=user_id):
            place = {"oldest_time": oldest.created_at, "oldest_id": oldest.id}
            execute(_DELETE_OLDER, recipient=user_id, **place)


def mark_read(user_id: str, up_to: str) -> None:
    """Mark a notification of a user and all that are older as read.

    Raise 422 if there is no such notification. Purge notifications that were read long ago.
    """
    created_at = fetch_value(_CREATED_AT, recipient=user_id, notification=up_to)
    if created_at is None:
        raise InvalidInput.at("/up_to", NO_SUCH_NOTIFICATION)
    execute(_MARK_READ, recipient=user_id, up_to_time=created_at, up_to_id=up_to, time=now())
    delete_surplus([user_id])
    purge_expired(Notification)


def mark_some_read(user_id: str, ids: Sequence[str]) -> None:
    """Mark some notifications of a user as read. Ids of others are ignored."""
    execute(_MARK_SOME_READ, recipient=user_id, ids=list(ids), time=now())
    purge_expired(Notification)


def subscribe(user_id: str, post_id: str, level: str) -> None:
    """Set what a member has chosen about a post. Both are locked."""
    execute(_upsert(db.engine.dialect.name), user_id=user_id, post_id=post_id, level=level)


@cache
def _upsert(dialect: str) -> Any:
    statement = upsert(Subscription, dialect)
    keys = [Subscription.post_id, Subscription.user_id]
    return statement.on_conflict_do_update(
        index_elements=keys, set_={"level": statement.excluded.level}
    )


def unsubscribe(user_id: str, post_id: str) -> None:
    """Delete what a member has chosen about a post, if anything."""
    own = sa.and_(Subscription.post_id == post_id, Subscription.user_id == user_id)
    execute(sa.delete(Subscription).where(own))
