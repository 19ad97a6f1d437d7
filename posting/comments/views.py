"""Comments and replies: list, read, write, edit, delete."""

from typing import Any

from posting.accounts import acts
from posting.accounts.current_user import (
    SIGNED_IN,
    TOKEN_OPTIONAL,
    current_user,
    lock_current_user,
    user_id,
)
from posting.accounts.permissions import NotAuthor, is_author, may_delete
from posting.accounts.queries import NoSuchUser, user_exists
from posting.comments import queries, schemas, threads
from posting.comments.models import Comment
from posting.comments.queries import NoSuchComment, get_comment_for_update
from posting.db.editing import edit
from posting.db.transactions import commit, execute
from posting.posts.locks import lock_post
from posting.posts.queries import NoSuchPost, post_exists
from posting.web.endpoint import SHARED, Blueprint, Reply
from posting.web.etags import etag_header, require_version
from posting.web.idempotency import Once
from posting.web.limits import Limit
from posting.web.pagination import paginate
from posting.web.rows import to_item
from posting.web.urls import external_url

LIMIT = Limit("comments", "LIMIT_COMMENTS", user_id)

comments = Blueprint("comments", __name__, description="Comments on posts, and replies to them")


class CommentEditForbidden(NotAuthor):
    description = "Only the author of a comment may edit it."


class CommentDeletionForbidden(NotAuthor):
    description = "Only the author of a comment or a moderator may delete it."


@comments.get(
    "/posts/<nanoid:id>/comments",
    access=TOKEN_OPTIONAL,
    cache=SHARED,
    query=schemas.CommentsOnPostQuery(),
    returns=schemas.Comment(many=True),
    headers=["Link"],
    errors=[NoSuchPost],
)
def list_comments(id: str, query: dict[str, Any]) -> Reply:
    """List the comments on a post.

    Oldest first, which is the default, a parent always comes before its replies.
    """
    newest_first = query["sort"] == "newest"
    page = paginate(
        queries.COMMENTS_ON_POST,
        limit=query["limit"],
        cursor=query.get("cursor"),
        name=f"{id}-newest" if newest_first else id,
        newest_first=newest_first,
        parameters={"post": id},
    )
    if not page.items and not post_exists(id):
        raise NoSuchPost
    return page.items, page.headers


@comments.get(
    '/users/<nanoid("me"):id>/comments',
    access=TOKEN_OPTIONAL,
    cache=SHARED,
    query=schemas.CommentsQuery(),
    returns=schemas.Comment(many=True),
    headers=["Link"],
    errors=[NoSuchUser],
)
def list_comments_of_user(id: str, query: dict[str, Any]) -> Reply:
    """List the comments of a user, newest first."""
    page = paginate(
        queries.COMMENTS_BY_AUTHOR,
        limit=query["limit"],
        cursor=query.get("cursor"),
        name=id,
        newest_first=True,
        parameters={"author": id},
    )
    if not page.items and not user_exists(id):
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
def create_comment(id: str, body: dict[str, Any], once: Once) -> Reply:
    """Comment on a post, or reply to a comment on it."""
    lock_current_user()
    lock_post(id)
    parent = threads.get_parent(body.get("parent_id"), id)
    created_at = threads.timestamp_after(parent)
    values = {"post_id": id, "author_id": current_user.id, "created_at": created_at, **body}
    comment = to_item(execute(queries.INSERT_COMMENT, **values).one())
    comment["author"] = current_user.as_author()
    threads.count_comment(id, created_at)
    headers = etag_header(comment.pop("version"))
    headers["Location"] = external_url("comments.get_comment", id=comment["id"])
    return once.commit(comment, headers)


@comments.get(
    "/comments/<nanoid:id>",
    access=TOKEN_OPTIONAL,
    cache=SHARED,
    returns=schemas.Comment(),
    errors=[NoSuchComment],
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
    if not is_author(comment.author_id):
        raise CommentEditForbidden
    require_version(if_match, comment.version)
    edit(Comment, comment, body)
    edited = queries.get_comment(id)
    commit()
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
    if not may_delete(comment.author_id):
        raise CommentDeletionForbidden
    require_version(if_match, comment.version)
    acts.record_deletion("comment", id, comment.author_id)
    threads.delete_comments([id])
    commit()
    return None
