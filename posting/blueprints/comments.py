"""Comments and replies: list, read, write, edit, delete."""

from typing import Any

import sqlalchemy as sa
from werkzeug.exceptions import Forbidden

from posting.auth.sessions import current_user, hold_account, signed_in, user_id
from posting.db import locks
from posting.db.engine import db, insert, select
from posting.db.models import Comment, Post
from posting.domain import deletion, moderation
from posting.http.endpoint import Blueprint, public
from posting.http.errors import InvalidInput
from posting.http.etags import IfMatch, require_match, versioned
from posting.http.idempotency import IdempotencyKey, idempotent
from posting.http.pagination import paginate
from posting.http.rate_limits import Limit, charge, limited
from posting.http.urls import external_url
from posting.schemas import comments as comments_schemas

LIMIT = Limit("comments", "LIMIT_COMMENTS")

comments = Blueprint("comments", __name__, description="What the community says to it")


class CommentEditForbidden(Forbidden):
    description = "Only its author may edit a comment."


class CommentDeletionForbidden(Forbidden):
    description = "Only its author or a moderator may delete a comment."


@comments.get("/posts/<nanoid:id>/comments")
@public
@comments.arguments(comments_schemas.CommentsQuery, location="query")
@comments.answers(locks.NoSuchPost)
@comments.response(200, comments_schemas.Comment(many=True), headers={"Link": "Link"})
def list_comments(query: dict[str, Any], id: str) -> Any:
    """List the comments on a post, the oldest first: a parent always comes before its replies."""
    page = paginate(Comment.on_post(), Comment.item, query | {"post": id}, newest_first=False)
    if page[0] or select(sa.select(Post.id).where(Post.id == id)):
        return page
    raise locks.NoSuchPost


@comments.post("/posts/<nanoid:id>/comments")
@signed_in
@limited(LIMIT, user_id)
@comments.arguments(comments_schemas.CommentInput)
@comments.arguments(IdempotencyKey, location="headers")
@idempotent
@comments.answers(locks.NoSuchPost)
@comments.response(201, comments_schemas.Comment, headers={"ETag": "ETag"})
def create_comment(fields: dict[str, Any], id: str) -> Any:
    """Comment on a post, or reply to a comment on it."""
    hold_account()
    locks.get_post_for_update(id)
    moment = Comment.moment_of_reply(_parent(fields.get("parent_id"), id))
    comment_id = insert(Comment, post_id=id, author_id=user_id(), created_at=moment, **fields)
    db.session.execute(Post.count_comment(id))
    charge((LIMIT, user_id()))
    shown, headers = _shown(comment_id)
    return shown, headers | {"Location": external_url("comments.get_comment", id=comment_id)}


@comments.get("/comments/<nanoid:id>")
@public
@comments.answers(locks.NoSuchComment)
@comments.response(200, comments_schemas.Comment)
def get_comment(id: str) -> Any:
    """Read a comment."""
    return _shown(id)


@comments.patch("/comments/<nanoid:id>")
@signed_in
@comments.arguments(comments_schemas.CommentChange(partial=True))
@comments.arguments(IfMatch, location="headers")
@comments.answers(CommentEditForbidden, locks.NoSuchComment)
@comments.response(200, comments_schemas.Comment, headers={"ETag": "ETag"})
def edit_comment(changes: dict[str, Any], condition: dict[str, str], id: str) -> Any:
    """Edit a comment of one's own."""
    comment = locks.get_comment_for_update(id)
    if not comment.editable_by(current_user()):
        raise CommentEditForbidden
    require_match(condition, comment.version)
    comment.assign(changes)
    db.session.flush()
    answer = _shown(id)
    db.session.commit()
    return answer


@comments.delete("/comments/<nanoid:id>")
@signed_in
@comments.arguments(IfMatch, location="headers")
@comments.answers(CommentDeletionForbidden, locks.NoSuchComment)
@comments.response(204)
def delete_comment(condition: dict[str, str], id: str) -> Any:
    """Delete a comment of one's own, or any comment as a moderator.

    One that has replies stays as their place, without author and content.
    """
    comment = locks.get_comment_for_update(id)
    if not comment.deletable_by(current_user()):
        raise CommentDeletionForbidden
    require_match(condition, comment.version)
    moderation.record_deletion("comment", id, comment.author_id)
    deletion.delete_comments([id])
    db.session.commit()


def _shown(id: str) -> tuple[dict[str, Any], dict[str, str]]:
    rows = select(Comment.one(), id=id)
    if not rows:
        raise locks.NoSuchComment
    return Comment.item(rows[0]), versioned(rows[0].version)


def _parent(parent_id: str | None, post_id: str) -> Comment | None:
    if parent_id is None:
        return None
    parent = db.session.get(Comment, parent_id)
    if parent is None or parent.is_deleted or parent.post_id != post_id:
        raise InvalidInput.at("/parent_id", "Must be a comment on this post that is not deleted.")
    return parent
