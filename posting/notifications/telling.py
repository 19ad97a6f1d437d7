"""Tell members what concerns them, within the transaction that causes it."""

from collections.abc import Collection
from contextlib import suppress

import sqlalchemy as sa

from posting.db.transactions import execute, fetch_all
from posting.notifications import queries
from posting.notifications.kinds import APPLICATION, kinds_for_moderators
from posting.notifications.models import Notification
from posting.notifications.store import Recipients, notify
from posting.web.limits import Hits, Limit, LimitReached

# Beyond it, a text is saved, but notifies no other member whom it mentions.
MENTION_LIMIT = Limit("mentions", "LIMIT_MENTIONS")


def tell_of_post(id: str, author_id: str, mentions: Collection[str]) -> None:
    """Tell the members whom a new or edited post mentions, by the names in it."""
    about = {"actor_id": author_id, "post": id}
    if names := _count_mentions(queries.MENTIONED_IN_POST, mentions, **about):
        notify(queries.MENTIONED_IN_POST, post_id=id, names=names, **about)


def tell_of_comment(
    id: str, post_id: str, parent_id: str | None, author_id: str, mentions: Collection[str]
) -> None:
    """Tell the members whom a new comment concerns."""
    about = {"actor_id": author_id, "comment_id": id, "post": post_id}
    names = _count_mentions(queries.MENTIONED, mentions, **about)
    notify(queries.RECIPIENTS_OF_COMMENT, parent=parent_id, names=names, **about)


def tell_of_edited_comment(
    id: str, post_id: str, author_id: str, mentions: Collection[str]
) -> None:
    """Tell the members whom an edited comment mentions, if its former text did not."""
    about = {"actor_id": author_id, "comment_id": id, "post": post_id}
    if names := _count_mentions(queries.MENTIONED_IN_COMMENT, mentions, **about):
        notify(queries.MENTIONED_IN_COMMENT, names=names, **about)


def tell_of_application(user_id: str) -> None:
    """Tell the moderators that an account waits for approval."""
    notify(queries.MODERATORS, actor_id=user_id, kind=APPLICATION)


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
    of_moderators = Notification.kind.in_(kinds_for_moderators())
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
