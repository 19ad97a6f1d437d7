"""Listeners that write notifications within the transaction of an event."""

from collections.abc import Collection
from contextlib import suppress

import sqlalchemy as sa

from posting.accounts.events import AccountApplied, ApplicationDecided, ModeratorDemoted
from posting.comments.events import CommentCreated, CommentEdited, CommentsEmptied
from posting.db.events import Listeners
from posting.db.transactions import execute, fetch_all
from posting.notifications import queries
from posting.notifications.kinds import APPLICATION, kinds_for_moderators
from posting.notifications.models import Notification
from posting.notifications.store import Recipients, notify
from posting.posts.events import PostWritten
from posting.web.limits import Hits, Limit, LimitReached

# Beyond it, a text is saved, but notifies no other member whom it mentions.
MENTION_LIMIT = Limit("mentions", "LIMIT_MENTIONS")


def _tell_of_post(event: PostWritten) -> None:
    about = {"actor_id": event.author_id, "post": event.id}
    if names := _count_mentions(queries.MENTIONED_IN_POST, event.mentions, **about):
        notify(queries.MENTIONED_IN_POST, post_id=event.id, names=names, **about)


def _tell_of_comment(event: CommentCreated) -> None:
    about = {"actor_id": event.author_id, "comment_id": event.id, "post": event.post_id}
    names = _count_mentions(queries.MENTIONED, event.mentions, **about)
    notify(queries.RECIPIENTS_OF_COMMENT, parent=event.parent_id, names=names, **about)


def _tell_of_edit(event: CommentEdited) -> None:
    about = {"actor_id": event.author_id, "comment_id": event.id, "post": event.post_id}
    if names := _count_mentions(queries.MENTIONED_IN_COMMENT, event.mentions, **about):
        notify(queries.MENTIONED_IN_COMMENT, names=names, **about)


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


def _forget_comments(event: CommentsEmptied) -> None:
    """Delete the notifications about comments. The database deletes those about deleted rows."""
    execute(sa.delete(Notification).where(Notification.comment_id.in_(event.ids)))


def _tell_moderators(event: AccountApplied) -> None:
    notify(queries.MODERATORS, actor_id=event.id, kind=APPLICATION)


def _forget_application(event: ApplicationDecided) -> None:
    about_it = sa.and_(Notification.actor_id == event.id, Notification.kind == APPLICATION)
    execute(sa.delete(Notification).where(about_it))


def _forget_what_moderators_read(event: ModeratorDemoted) -> None:
    is_own = Notification.user_id == event.id
    of_moderators = Notification.kind.in_(kinds_for_moderators())
    execute(sa.delete(Notification).where(is_own, of_moderators))


LISTENERS: Listeners = (
    (PostWritten, _tell_of_post),
    (CommentCreated, _tell_of_comment),
    (CommentEdited, _tell_of_edit),
    (CommentsEmptied, _forget_comments),
    (AccountApplied, _tell_moderators),
    (ApplicationDecided, _forget_application),
    (ModeratorDemoted, _forget_what_moderators_read),
)
