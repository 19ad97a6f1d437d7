"""Tell members what concerns them, within the transaction that causes it."""

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from flask import current_app
from sqlalchemy.orm import InstrumentedAttribute

from posting.accounts.models import User
from posting.comments.models import Comment
from posting.config import sends_mails
from posting.db.base import Identifier
from posting.db.transactions import execute, fetch_all
from posting.db.types import UtcDateTime, new_id, now
from posting.mail.models import EACH, MAIL, NOTIFICATION, Mailbox
from posting.notifications.models import (
    ALL,
    APPLICATION,
    BACKUP,
    COMMENT,
    FOR_MODERATORS,
    MENTION,
    MUTED,
    REACTION,
    REPLY,
    RESET_LINK,
    ROLE,
    Notification,
    Subscription,
)
from posting.notifications.store import delete_surplus
from posting.outbox.store import enqueue
from posting.posts.models import Post
from posting.push.models import PUSH, PushSubscription
from posting.web.limits import Hits, Limit, LimitReached

# Beyond it, a text is saved, but notifies no other member whom it mentions.
MENTION_LIMIT = Limit("mentions", "LIMIT_MENTIONS")

INBOX_ONLY: tuple[str, ...] = ()  # no channel

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
# Whether a member wants a mail for each notification, and whether one has a device for pushes.
_WANTED = sa.select(
    sa.exists().where(Mailbox.mail == EACH, Mailbox.address.is_not(None)).label("mails"),
    sa.exists(sa.select(PushSubscription.id)).label("pushes"),
)
_AUTHOR = sa.select(User.id, sa.literal(REACTION).label("kind")).where(
    User.id == sa.bindparam("author"), ~_has_muted
)
MODERATORS = sa.select(User.id, sa.bindparam("kind", type_=Notification.kind.type).label("kind"))
MODERATORS = MODERATORS.where(User.is_moderator, ~User.is_pending, User.id.is_distinct_from(_ACTOR))

_MEMBER = sa.select(User.id, sa.bindparam("kind", type_=Notification.kind.type).label("kind"))
_MEMBER = _MEMBER.where(User.id.is_distinct_from(_ACTOR))
_is_member = User.id == sa.bindparam("member")
_OWNERS_AND_MEMBER = _MEMBER.where(sa.or_(sa.and_(User.is_moderator, User.is_owner), _is_member))
_MEMBER = _MEMBER.where(_is_member)
_OWNERS = sa.select(User.id, sa.bindparam("kind", type_=Notification.kind.type).label("kind"))
_OWNERS = _OWNERS.where(User.is_moderator, User.is_owner)


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


def tell_of_reaction(text: Any, actor_id: str) -> None:
    """Tell the author of a text that somebody has reacted to it, in the inbox alone.

    The text has its `post_id`, its `comment_id` if it is a comment, and its `author_id`.
    """
    if text.author_id not in {None, actor_id}:
        about = _about(text)
        reader = {"author": text.author_id, "post": text.post_id}
        notify(_AUTHOR, INBOX_ONLY, actor_id=actor_id, **about, **reader)


def forget_reaction(text: Any, actor_id: str) -> None:
    """Delete what the author of a text was told about a reaction that is taken back."""
    is_it = sa.and_(*(getattr(Notification, name) == id for name, id in _about(text).items()))
    is_reaction = sa.and_(Notification.kind == REACTION, Notification.actor_id == actor_id)
    told = sa.and_(Notification.user_id == text.author_id, is_reaction, is_it)
    execute(sa.delete(Notification).where(told))


def _about(text: Any) -> dict[str, str]:
    """Return what a notification about a text has: the id of its comment, or else of its post."""
    return {"comment_id": text.comment_id} if text.comment_id else {"post_id": text.post_id}


def tell_of_role(user_id: str, username: str, role: str, actor_id: str | None) -> None:
    """Tell a member and the owners that the member has another role."""
    about = {"actor_id": actor_id, "member": user_id, "excerpt": username, "reason": role}
    notify(_OWNERS_AND_MEMBER, kind=ROLE, **about)


def tell_of_reset_link(user_id: str, username: str, actor_id: str, *, is_owner: bool) -> None:
    """Tell a member that somebody else can choose a new password for the account.

    If the member is an owner, tell the other owners as well.
    """
    recipients = _OWNERS_AND_MEMBER if is_owner else _MEMBER
    notify(recipients, kind=RESET_LINK, actor_id=actor_id, member=user_id, excerpt=username)


def tell_of_backup(actor_id: str) -> None:
    """Tell all owners that one of them downloads a backup.

    This owner is told as well, because somebody else may have used the password.
    """
    notify(_OWNERS, kind=BACKUP, actor_id=actor_id)


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
    channels: Collection[str] = (MAIL, PUSH),
    /,
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
    own value. Lock what the notification is about first. It is also sent by the `channels`.
    """
    id, time = new_id(), now()
    told = execute(
        _insert(recipients),
        **{"new_id": id, "time": time, "actor_id": actor_id, "post_id": post_id},
        **{"comment_id": comment_id, "reason": reason, "excerpt": excerpt},
        **parameters,
    )
    user_ids = told.scalars().all()
    # With each notification, delete the surplus of one recipient in 64, so that it stays small.
    if chosen := [user_id for user_id in user_ids if user_id[0] == id[0]]:
        delete_surplus(chosen)
    if user_ids and channels:
        _queue(id, time, channels)


def _queue(id: str, time: datetime, channels: Collection[str]) -> None:
    """Add a notification to the outbox of each channel. The delivery finds the recipients."""
    [wanted] = fetch_all(_WANTED)
    if MAIL in channels and wanted.mails and sends_mails(current_app.config):
        enqueue(MAIL, NOTIFICATION, about=id, about_at=time)
    if PUSH in channels and wanted.pushes:
        enqueue(PUSH, NOTIFICATION, about=id, about_at=time)


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
