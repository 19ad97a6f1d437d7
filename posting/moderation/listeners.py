"""Listeners that tell members what moderators do, within the transaction that does it."""

import sqlalchemy as sa
from flask import has_request_context

from posting.accounts.current_user import current_user
from posting.accounts.events import Removal
from posting.comments.events import CommentsDeleted, CommentsEmptied
from posting.db.events import Listeners
from posting.moderation.models import COMMENT, REMOVED, Report
from posting.moderation.store import close_reports, notify_of_removal
from posting.posts.events import PostsDeleted


def _tell_author(event: Removal) -> None:
    notify_of_removal(event.author_id, event.reason, excerpt=event.excerpt, post_id=event.post_id)


def _close_reports_on_posts(event: PostsDeleted) -> None:
    """Close the reports on posts that are deleted, and on their comments."""
    _close(Report.post_id.in_(event.ids))


def _close_reports_on_comments(event: CommentsDeleted | CommentsEmptied) -> None:
    _close(sa.and_(Report.target_kind == COMMENT, Report.target_id.in_(event.ids)))


def _close(condition: sa.ColumnElement[bool]) -> None:
    """Close reports unless an author deletes their own text: moderators should still see these."""
    if not has_request_context():
        close_reports(condition, REMOVED, note=None, closer_id=None)
    elif current_user.is_moderator:
        is_others = Report.author_id.is_distinct_from(current_user.id)
        condition = sa.and_(condition, is_others)
        close_reports(condition, REMOVED, note=None, closer_id=current_user.id)


LISTENERS: Listeners = (
    (Removal, _tell_author),
    (PostsDeleted, _close_reports_on_posts),
    (CommentsDeleted, _close_reports_on_comments),
    (CommentsEmptied, _close_reports_on_comments),
)
