"""Notifications, and subscriptions to posts."""

from marshmallow import fields

from posting.accounts.schemas import author
from posting.notifications.models import KINDS, LEVELS
from posting.web.schemas import (
    Identifier,
    Input,
    OneOf,
    Output,
    PageQuery,
    Parameter,
    String,
    Timestamp,
    described,
    extensible,
)

MAX_COUNT = 100
DEFAULT = "default"


class NotificationsQuery(PageQuery):
    """A page of notifications."""

    unread = Parameter(
        validate=OneOf(["true"]),
        metadata=described("true", "List only the notifications that are not read."),
    )


class PostTitle(Output):
    """A post in short."""

    id = Identifier()
    title = fields.String(metadata=described("On engines"))


class CommentExcerpt(Output):
    """A comment in short."""

    id = Identifier()
    excerpt = fields.String(
        metadata=described("And cloth?", "Its beginning, as plain text in one line.")
    )


class Notification(Output):
    """A notification of a member."""

    id = Identifier()
    kind = fields.String(metadata=extensible(KINDS, "reply"))
    created_at = Timestamp()
    read = fields.Boolean(metadata=described(False))
    actor = author()
    post = fields.Nested(
        PostTitle,
        allow_none=True,
        metadata={"description": "The post that it is about, or that the comment is on."},
    )
    comment = fields.Nested(
        CommentExcerpt,
        allow_none=True,
        metadata={"description": "The comment that it is about. Null if it is about none."},
    )
    reason = fields.String(allow_none=True, metadata=described(None, "Why something was done."))
    excerpt = fields.String(
        allow_none=True, metadata=described(None, "The beginning of a text that no longer exists.")
    )


class UnreadCount(Output):
    """The number of notifications that are not read."""

    count = fields.Integer(metadata=described(3, f"{MAX_COUNT} means that or more."))


class ReadInput(Input):
    """The last notification to mark as read."""

    up_to = Identifier(
        "The ID of a notification. All that are not newer become read.", required=True
    )


class SubscriptionInput(Input):
    """A choice about a post."""

    level = String(
        required=True,
        validate=OneOf(LEVELS),
        metadata=described(
            "all",
            "`all`: a notification of each comment on the post. `muted`: none because of this "
            "post and its comments.",
        ),
    )


class Subscription(Output):
    """The choice of the current user about a post."""

    level = fields.String(
        metadata=extensible([*LEVELS, DEFAULT], "all", f"`{DEFAULT}` if there was no choice.")
    )
