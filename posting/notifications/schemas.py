"""Notifications, and subscriptions to posts."""

from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from posting.accounts.schemas import Author, author
from posting.notifications.models import KINDS, LEVELS
from posting.web.errors import REQUIRED, Message
from posting.web.schemas import (
    MAX_PAGE_SIZE,
    Identifier,
    Identifiers,
    Input,
    ListedIdentifiers,
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
MAX_ACTORS = 3
MAX_NEW, MAX_SHOWN = 100, 200  # comments
DEFAULT = "default"
UP_TO_OR_IDS = Message("repeated", "Send only one of up_to and ids.")


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


class PostNotifications(Output):
    """Notifications about the comments on one post, or a single one about something else."""

    post = fields.Nested(
        PostTitle, allow_none=True, metadata={"description": "Null if it is about no post."}
    )
    unread = fields.Integer(metadata=described(5, "How many of them are not read."))
    actors = fields.List(
        fields.Nested(Author),
        metadata={
            "description": f"Who has caused those that are not read, latest first, {MAX_ACTORS} at "
            "most."
        },
    )
    actor_count = fields.Integer(
        metadata=described(5, "How many members these are. Deleted accounts are one.")
    )
    first = fields.Nested(
        Notification,
        metadata={"description": "The oldest that is not read. The latest if all are read."},
    )
    latest = fields.Nested(Notification)


class UnreadCount(Output):
    """The number of notifications that are not read."""

    count = fields.Integer(metadata=described(3, f"{MAX_COUNT} means that or more."))


class ReadInput(Input):
    """The notifications to mark as read."""

    up_to = Identifier("The ID of a notification. All that are not newer become read.")
    ids = Identifiers("The IDs of notifications that become read.", most=MAX_COUNT)

    @validates_schema
    def require_one(self, data: dict[str, Any], **_: Any) -> None:
        if len(data) != 1:
            raise ValidationError(REQUIRED if not data else UP_TO_OR_IDS, "up_to")


class SeenInput(Input):
    """The comments on a post that were seen."""

    up_to = Identifier(
        "The ID of a comment on the post. It and all that are older count as seen. Null if only "
        "the post was seen.",
        required=True,
        allow_none=True,
    )
    shown = Identifiers(
        "Comments on the post that were shown. The notifications about them become read.",
        most=MAX_SHOWN,
    )


class Seen(Output):
    """The comments on a post that you have seen, and those that are new."""

    up_to = Identifier("The last comment that you have seen.", allow_none=True)
    until = Timestamp(
        "Its time, or that of the post. Null if you have not seen it.", allow_none=True
    )
    latest = Identifier("The latest comment.", allow_none=True)
    new = fields.List(
        Identifier(),
        metadata=described(
            [], f"Comments by others that are newer, oldest first, {MAX_NEW} at most."
        ),
    )
    unread = fields.Boolean(
        metadata=described(
            False, "Whether notifications about the post or about its comments are unread."
        )
    )


class SeenQuery(Input):
    """Some posts."""

    ids = ListedIdentifiers("The IDs of posts.", most=MAX_PAGE_SIZE)


class NewComments(Output):
    """The number of comments on a post that are new to you."""

    id = Identifier("The ID of the post.")
    new = fields.Integer(
        metadata=described(
            2, f"Comments by others, later than what you have seen. {MAX_NEW} means that or more."
        )
    )
    first = Identifier("The oldest of them.", allow_none=True)


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
