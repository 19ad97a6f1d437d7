"""Listeners that write notifications within the transaction of an event."""

import sqlalchemy as sa

from posting.accounts.events import AccountApplied, ApplicationDecided, ModeratorDemoted
from posting.comments.events import CommentCreated, CommentEdited, CommentsEmptied
from posting.db.events import Listeners
from posting.db.transactions import execute
from posting.notifications import queries
from posting.notifications.kinds import APPLICATION, kinds_for_moderators
from posting.notifications.models import Notification
from posting.notifications.store import notify
from posting.posts.events import PostWritten


def _tell_of_post(event: PostWritten) -> None:
    if event.mentions:
        notify(
            queries.MENTIONED_IN_POST,
            actor_id=event.author_id,
            post_id=event.id,
            post=event.id,
            names=sorted(event.mentions),
        )


def _tell_of_comment(event: CommentCreated) -> None:
    notify(
        queries.RECIPIENTS_OF_COMMENT,
        actor_id=event.author_id,
        comment_id=event.id,
        post=event.post_id,
        parent=event.parent_id,
        names=sorted(event.mentions),
    )


def _tell_of_edit(event: CommentEdited) -> None:
    if event.mentions:
        notify(
            queries.MENTIONED_IN_COMMENT,
            actor_id=event.author_id,
            comment_id=event.id,
            post=event.post_id,
            names=sorted(event.mentions),
        )


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
