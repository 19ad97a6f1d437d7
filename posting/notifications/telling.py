"""Tell members what concerns them, within the transaction that causes it."""

from collections.abc import Collection
from contextlib import suppress
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import InstrumentedAttribute

from posting.accounts.models import User
from posting.comments.models import Comment
from posting.db.base import Identifier
from posting.db.transactions import execute, fetch_all
from posting.db.types import UtcDateTime, new_id, now
from posting.notifications.models import (
    ALL,
    APPLICATION,
    COMMENT,
    FOR_MODERATORS,
    MENTION,
    MUTED,
    REPLY,
    Notification,
    Subscription,
)
from posting.notifications.store import delete_surplus
from posting.posts.models import Post
from posting.web.limits import Hits, Limit, LimitReached

# Beyond it, a text is saved, but notifies no other member whom it mentions.
MENTION_LIMIT = Limit("mentions", "LIMIT_MENTIONS")

Recipients = sa.Select[*tuple[Any, ...]]  # the `id` of users, and the `kind` for each

_POST = sa.bindparam("post", type_=Identifier)
_ACTOR = sa.bindparam("actor_id", type_=Identifier)
_is_named = sa.func.lower(User.username).in_(sa.bindparam("names", expanding=True))


def _claim(user_id: InstrumentedAttribute[Any], place: int) -> sa.Select[str, int]:
    """Select users with a place. Of several places of a user, the lowest decides the kind."""
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
_RECIPIENTS_OF_COMMENT = (
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
_MENTIONED = sa.select(
    User.id, sa.literal(MENTION).label("kind"), sa.func.lower(User.username).label("name")
).where(_is_named, ~User.is_pending, User.id.is_distinct_from(_ACTOR), ~_has_muted)
_MENTIONED_IN_COMMENT = _MENTIONED.where(
    ~_told.where(Notification.comment_id == sa.bindparam("comment_id"))
)
_MENTIONED_IN_POST = _MENTIONED.where(
    ~_told.where(Notification.post_id == _POST, Notification.kind == MENTION)
)
MODERATORS = sa.select(User.id, sa.bindparam("kind", type_=Notification.kind.type).label("kind"))
MODERATORS = MODERATORS.where(User.is_moderator, ~User.is_pending, User.id.is_distinct_from(_ACTOR))


def tell_of_post(id: str, author_id: str, mentions: Collection[str]) -> None:
    """Tell the members whom a new or edited post mentions, by the names in it."""
    about = {"actor_id": author_id, "post": id}
    if names := _count_mentions(_MENTIONED_IN_POST, mentions, **about):
        notify(_MENTIONED_IN_POST, post_id=id, names=names, **about)


def tell_of_comment(
    id: str, post_id: str, parent_id: str | None, author_id: str, mentions: Collection[str]
) -> None:
    """Tell the members whom a new comment concerns."""
    about = {"actor_id": author_id, "comment_id": id, "post": post_id}
    names = _count_mentions(_MENTIONED, mentions, **about)
    notify(_RECIPIENTS_OF_COMMENT, parent=parent_id, names=names, **about)


def tell_of_edited_comment(
    id: str, post_id: str, author_id: str, mentions: Collection[str]
) -> None:
    """Tell the members whom an edited comment mentions, if its former text did not."""
    about = {"actor_id": author_id, "comment_id": id, "post": post_id}
    if names := _count_mentions(_MENTIONED_IN_COMMENT, mentions, **about):
        notify(_MENTIONED_IN_COMMENT, names=names, **about)


def tell_of_application(user_id: str) -> None:
    """Tell the moderators that an account waits for approval."""
    notify(MODERATORS, actor_id=user_id, kind=APPLICATION)


def forget_comments(ids: Collection[str]) -> None:
    """Delete the notifications about comments that become placeholders.

    The database deletes those about rows that are deleted.
    """
    execute(sa.delete(Notification).where(Notification.comment_id.in_(ids)))


def forget_application(user_id: str) -> None:
    """Delete what moderators were told about an application, which is decided."""
    about_it = sa.and_(Notification.actor_id == user_id, Notification.kind == APPLICATION)
    execute(sa.delete(Notification).where(about_it))


def forget_what_moderators_read(user_id: str) -> None:
    """Delete the notifications of a former moderator that only moderators may read."""
    is_own = Notification.user_id == user_id
    of_moderators = Notification.kind.in_(FOR_MODERATORS)
    execute(sa.delete(Notification).where(is_own, of_moderators))


def _count_mentions(
    statement: Recipients, mentions: Collection[str], *, actor_id: str, **about: str
) -> list[str]:
    """Return the names of members whom a text may notify, and count these for its author.

    `statement` selects the members whom the text mentions and who are to be notified.
    """
    if not mentions:
        return []
    rows = fetch_all(statement, names=sorted(mentions), actor_id=actor_id, **about)
    names: list[str] = []
    with suppress(LimitReached):
        for name in sorted(row.name for row in rows):
            Hits().count((MENTION_LIMIT, actor_id))
            names.append(name)
    return names


def notify(
    recipients: Recipients,
    *,
    actor_id: str | None,
    post_id: str | None = None,
    comment_id: str | None = None,
    reason: str | None = None,
    excerpt: str | None = None,
    **parameters: Any,
) -> None:
    """Notify users within the transaction, by one statement for all.

    `parameters` are those of the SELECT `recipients`, which may also use the other arguments as
    parameters. If it has a column named like an argument, such as `excerpt`, each user gets their
    own value. Lock what the notification is about first.
    """
    id = new_id()
    told = execute(
        _insert(recipients),
        **{"new_id": id, "time": now(), "actor_id": actor_id, "post_id": post_id},
        **{"comment_id": comment_id, "reason": reason, "excerpt": excerpt},
        **parameters,
    )
    # With each notification, delete the surplus of one recipient in 64, so that it stays small.
    if chosen := [user_id for user_id in told.scalars() if user_id[0] == id[0]]:
        delete_surplus(chosen)


@cache
def _insert(recipients: Recipients) -> Any:
    """Return the INSERT of a notification for each recipient.

    It inserts in the order of the primary key, so that SQLite writes no page twice.
    """
    found = recipients.subquery()
    values = {
        "user_id": found.c.id,
        "kind": found.c.kind,
        "id": sa.bindparam("new_id", type_=Identifier),
        "created_at": sa.bindparam("time", type_=UtcDateTime()),
        **{
            name: found.c.get(name, sa.bindparam(name, type_=Notification.__table__.c[name].type))
            for name in ("actor_id", "post_id", "comment_id", "reason", "excerpt")
        },
    }
    rows = sa.select(*values.values()).order_by(found.c.id)
    return sa.insert(Notification).from_select([*values], rows).returning(Notification.user_id)
