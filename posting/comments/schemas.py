"""Comments on posts."""

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, post_load, validate, validates_schema

from posting.accounts.schemas import author
from posting.posts.schemas import file_ids, files
from posting.reactions.schemas import Reactions
from posting.search.fields import words_field
from posting.web.errors import Message
from posting.web.schemas import (
    NOT_BLANK_PATTERN,
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
    described,
    not_blank,
    page_size,
)

IMAGES_PER_COMMENT = 4
BOTH_NAMES = Message("repeated", "This is the former name of sort. Send only one of them.")


class CommentsQuery(PageQuery):
    """A page of comments."""

    limit = page_size(50)


class AllCommentsQuery(CommentsQuery):
    """A page of the comments of the community."""

    author = Identifier("The ID of a user, whose comments are listed.")
    q = words_field("content")


class CommentsOnPostQuery(CommentsQuery):
    """A page of comments on a post."""

    sort = Parameter(
        load_default="oldest",
        validate=OneOf(["oldest", "newest"]),
        metadata=described("newest", "Which comments come first."),
    )
    order = Parameter(
        validate=OneOf(["oldest", "newest"]),
        metadata={"deprecated": True} | described("newest", "The former name of `sort`."),
    )

    @validates_schema(pass_original=True)
    def refuse_both_names(self, _data: Any, original: Mapping[str, str], **_: Any) -> None:
        if {"sort", "order"} <= original.keys():
            raise ValidationError(BOTH_NAMES, "order")

    @post_load
    def replace_former_name(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return data | {"sort": data.pop("order", data["sort"])}


class CommentChange(Input):
    """A change to a comment."""

    content = String(
        required=True,
        validate=[Length(1, 10_000), not_blank],
        pattern=NOT_BLANK_PATTERN,
        metadata=described("And *cloth*?", "Plain text or Markdown; not blank."),
    )
    images = Identifiers(
        "Images that you have sent by `POST /images`, in the order in which they are shown. In an "
        "edit, also those that the comment has; the others are deleted.",
        most=IMAGES_PER_COMMENT,
    )
    files = file_ids("comment")


class CommentInput(CommentChange):
    """A new comment, perhaps a reply to another comment."""

    parent_id = Identifier(allow_none=True)


class Comment(Output):
    """A comment on a post."""

    computed: tuple[str, ...] = ("images", "files")

    id = Identifier()
    post_id = Identifier()
    parent_id = Identifier(allow_none=True)
    author = author()
    content = fields.String(allow_none=True, metadata=described("And *cloth*?"))
    deleted = fields.Boolean(
        metadata=described(False, "True if it was deleted and is kept for its replies.")
    )
    created_at = Timestamp()
    updated_at = Timestamp()
    reactions = fields.Nested(Reactions)
    images = fields.List(fields.Nested("Image"), validate=validate.Length(max=IMAGES_PER_COMMENT))
    files = files()


class CommentWithPost(Comment):
    """A comment in a list of comments on several posts."""

    computed: tuple[str, ...] = ("images", "files", "post_title")

    post_title = fields.String(metadata=described("On engines"))
