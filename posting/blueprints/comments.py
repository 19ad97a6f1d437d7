"""Comments and replies: list, read, write, edit, delete."""

from typing import Any

from werkzeug.exceptions import Forbidden

from posting.auth.login import SIGNED_IN, current_user, lock_current_user, user_id
from posting.db import queries
from posting.db.engine import db, insert
from posting.db.errors import NoSuchComment, NoSuchPost, NoSuchUser
from posting.db.locks import get_comment_for_update, lock_post
from posting.db.models import Comment
from posting.domain import moderation, threads
from posting.http import idempotency
from posting.http.endpoint import PUBLIC, Blueprint, Reply
from posting.http.etags import etag_header, require_match
from posting.http.pagination import paginate
from posting.http.rate_limits import Limit
from posting.http.urls import external_url
from posting.schemas import comments as schemas

LIMIT = Limit("comments", "LIMIT_COMMENTS", user_id)

comments = Blueprint("comments", __name__, description="Comments on posts, and replies to them")


class CommentEditForbidden(Forbidden):
    error_code = "not_author"
    description = "Only the author of a comment may edit it."


class CommentDeletionForbidden(Forbidden):
    error_code = "not_author"
    description = "Only the author of a comment or a moderator may delete it."


@comments.get(
    "/posts/<nanoid:id>/comments",
    access=PUBLIC,
    query=schemas.CommentsOnPostQuery(),
    returns=schemas.Comment(many=True),
    headers=["Link"],
    errors=[NoSuchPost],
)
def list_comments(id: str, query: dict[str, Any]) -> Reply:
    """List the comments on a post.

    Oldest first, which is the default, a parent always comes before its replies.
    """
    newest_first = query.pop("order") == "newest"
    page = paginate(
        queries.COMMENTS_ON_POST,
        query | {"post": id},
        name=f"{id}-newest" if newest_first else id,
        newest_first=newest_first,
    )
    if not page.items and not queries.post_exists(id):
        raise NoSuchPost
    return page.items, page.headers


@comments.get(
    '/users/<nanoid("me"):id>/comments',
    access=PUBLIC,
    query=schemas.CommentsQuery(),
    returns=schemas.Comment(many=True),
    headers=["Link"],
    errors=[NoSuchUser],
)
def list_comments_of_user(id: str, query: dict[str, Any]) -> Reply:
    """List the comments of a user, newest first."""
    page = paginate(queries.COMMENTS_OF_AUTHOR, query | {"author": id}, name=id, newest_first=True)
    if not page.items and not queries.user_exists(id):
        raise NoSuchUser
    return page.items, page.headers


@comments.post(
    "/posts/<nanoid:id>/comments",
    access=SIGNED_IN,
    limit=LIMIT,
    body=schemas.CommentInput(),
    idempotent=True,
    status=201,
    returns=schemas.Comment(),
    headers=["ETag", "Location"],
    errors=[NoSuchPost],
)
def create_comment(id: str, body: dict[str, Any]) -> Reply:
    """Comment on a post, or reply to a comment on it."""
    lock_current_user()
    lock_post(id)
    parent = threads.get_parent(body.get("parent_id"), id)
    created_at = threads.timestamp_after(parent)
    row = insert(Comment, post_id=id, author_id=current_user.id, created_at=created_at, **body)
    threads.count_comment(id, created_at)
    comment = queries.to_item(row, Comment.PUBLIC)
    comment |= {"author": current_user.as_author(), "deleted": False}
    headers = etag_header(row["version"])
    headers["Location"] = external_url("comments.get_comment", id=row["id"])
    idempotency.save(comment, headers)
    db.session.commit()
    return comment, headers


@comments.get(
    "/comments/<nanoid:id>", access=PUBLIC, returns=schemas.Comment(), errors=[NoSuchComment]
)
def get_comment(id: str) -> Reply:
    """Read a comment."""
    comment = queries.get_comment(id)
    return comment, etag_header(comment.pop("version"))


@comments.patch(
    "/comments/<nanoid:id>",
    access=SIGNED_IN,
    body=schemas.CommentChange(partial=True),
    if_match=True,
    returns=schemas.Comment(),
    headers=["ETag"],
    errors=[CommentEditForbidden, NoSuchComment],
)
def edit_comment(id: str, body: dict[str, Any], if_match: str | None) -> Reply:
    """Edit your own comment."""
    comment = get_comment_for_update(id)
    if not comment.is_editable_by(current_user):
        raise CommentEditForbidden
    require_match(if_match, comment.version)
    comment.assign(body)
    db.session.flush()
    edited = queries.get_comment(id)
    db.session.commit()
    return edited, etag_header(edited.pop("version"))


@comments.delete(
    "/comments/<nanoid:id>",
    access=SIGNED_IN,
    if_match=True,
    status=204,
    errors=[CommentDeletionForbidden, NoSuchComment],
)
def delete_comment(id: str, if_match: str | None) -> Reply:
    """Delete your own comment, or any comment as a moderator.

    A comment with replies is kept for them, without author and content.
    """
    comment = get_comment_for_update(id)
    if not comment.is_deletable_by(current_user):
        raise CommentDeletionForbidden
    require_match(if_match, comment.version)
    moderation.record_deletion("comment", id, comment.author_id)
    threads.delete_comments([id])
    db.session.commit()
    return None
