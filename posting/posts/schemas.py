"""Posts."""

from typing import Any

from marshmallow import ValidationError, fields, validate, validates_schema

from posting.accounts.schemas import author
from posting.reactions.schemas import Reactions
from posting.search.fields import words_field
from posting.topics.models import TOPICS_PER_POST
from posting.topics.schemas import TopicOfPost
from posting.web.errors import Message
from posting.web.schemas import (
    NOT_BLANK_PATTERN,
    ONE_LINE_PATTERN,
    Identifier,
    Identifiers,
    Input,
    Length,
    OneOf,
    Output,
    PageQuery,
    Parameter,
    String,
    Timestamp,
    Words,
    described,
    keeps_direction,
    not_blank,
    one_line,
)

IMAGES_PER_POST = 10
FILES_PER_TEXT = 5  # of a post, and of a comment
MAX_EXPANDED = 50  # posts in a list with their content, images or files
NOT_NEW_WITH_Q = Message("not_a_choice", "Must be new with q.")
PINNED_WITH_Q = Message("repeated", "Send only one of q and pinned.")
WITH_TOPIC = Message("repeated", "Send only one of q, author, pinned and topic.")
TOO_MANY_EXPANDED = Message("out_of_range", f"Must be at most {MAX_EXPANDED} with expand.")


def sort_field() -> Parameter:
    """Return the field of the order of posts."""
    return Parameter(
        load_default="new",
        validate=OneOf(["new", "active"]),
        metadata=described(
            "active",
            "`new`: the newest posts first. `active`: those with the latest comments first; a post "
            "without comments counts by its own time.",
        ),
    )


class PostsQuery(PageQuery):
    """A page of posts."""

    author = Identifier("The ID of a user, whose posts are listed.")
    topic = Identifier("The ID of a topic, whose posts are listed.")
    q = words_field("title or content")
    sort = sort_field()
    pinned = Parameter(
        validate=OneOf(["true"]),
        metadata=described("true", "List only the pinned posts, five at most."),
    )
    expand = Words(
        "content",
        "images",
        "files",
        metadata=described(
            ["content", "images"],
            f"Fields to add to each post. `limit` is then at most {MAX_EXPANDED}, and a page ends "
            "early if its content is long.",
        ),
    )

    @validates_schema
    def limit_expanded_pages(self, data: dict[str, Any], **_: Any) -> None:
        if "expand" in data and data.get("limit", 0) > MAX_EXPANDED:
            raise ValidationError(TOO_MANY_EXPANDED, "limit")

    @validates_schema
    def refuse_another_order_with_q(self, data: dict[str, Any], **_: Any) -> None:
        if "q" in data and data.get("sort") != "new":
            raise ValidationError(NOT_NEW_WITH_Q, "sort")

    @validates_schema
    def refuse_pinned_with_q(self, data: dict[str, Any], **_: Any) -> None:
        if "q" in data and "pinned" in data:
            raise ValidationError(PINNED_WITH_Q, "pinned")

    @validates_schema
    def refuse_others_with_topic(self, data: dict[str, Any], **_: Any) -> None:
        if "topic" in data and not data.keys().isdisjoint({"q", "author", "pinned"}):
            raise ValidationError(WITH_TOPIC, "topic")


def content() -> String:
    """Return the field of a post's text."""
    return String(
        required=True,
        validate=[Length(1, 100_000), not_blank],
        pattern=NOT_BLANK_PATTERN,
        metadata=described("They *weave* algebra.", "Plain text or Markdown; not blank."),
    )


def file_ids(text: str) -> Identifiers:
    """Return the field of the files that a request gives to a post or comment."""
    return Identifiers(
        "Files that you have sent by `POST /files`, in the order in which they are shown. In an "
        f"edit, also those that the {text} has; the others are deleted.",
        most=FILES_PER_TEXT,
    )


def files() -> fields.List[Any]:
    """Return the field of the files of a post or comment."""
    return fields.List(fields.Nested("File"), validate=validate.Length(max=FILES_PER_TEXT))


class PostInput(Input):
    """A new post."""

    title = String(
        required=True,
        validate=[Length(1, 200), not_blank, one_line, keeps_direction],
        pattern=ONE_LINE_PATTERN,
        metadata=described("On engines", "One line, not blank."),
    )
    content = content()
    images = Identifiers(
        "Images that you have sent by `POST /images`, in the order in which they are shown. In an "
        "edit, also those that the post has; the others are deleted.",
        most=IMAGES_PER_POST,
    )
    files = file_ids("post")
    topics = Identifiers(
        "What the post is about. In an edit, these replace its former topics.", most=TOPICS_PER_POST
    )


class PreviewInput(Input):
    """The text of a post or comment that is to be rendered."""

    content = content()


class PostBrief(Output):
    """A post in a list."""

    computed: tuple[str, ...] = ("topics", "images", "files")

    id = Identifier()
    title = fields.String(metadata=described("On engines"))
    author = author()
    created_at = Timestamp()
    updated_at = Timestamp()
    last_activity_at = Timestamp()
    comment_count = fields.Integer(metadata=described(0))
    image_count = fields.Integer(metadata=described(0))
    file_count = fields.Integer(metadata=described(0))
    topics = fields.List(fields.Nested(TopicOfPost), validate=validate.Length(max=TOPICS_PER_POST))
    reactions = fields.Nested(Reactions)
    locked = fields.Boolean(metadata=described(False, "Whether only moderators may comment."))
    pinned = fields.Boolean(metadata=described(False, "Whether it is first on the front page."))
    content = fields.String(metadata=described("They *weave* algebra."))
    images = fields.List(fields.Nested("Image"), validate=validate.Length(max=IMAGES_PER_POST))
    files = files()

    optional: tuple[str, ...] = ("content", "images", "files")


class Post(PostBrief):
    """A post with its content, images and files."""

    optional: tuple[str, ...] = ()


class Preview(Output):
    """Markdown as it will be shown on a page."""

    html = fields.String(metadata=described("<p>They <em>weave</em> algebra.</p>"))
