"""Comments and replies: list, read, write, edit, delete."""

from datetime import datetime
from typing import Any

from werkzeug.exceptions import Forbidden

from posting.accounts.current_user import (
    READERS,
    SIGNED_IN,
    current_user,
    lock_current_user,
    user_id,
)
from posting.accounts.permissions import EDIT_LIMIT, NotAuthor, is_author, may_delete
from posting.accounts.queries import NoSuchUser, user_exists
from posting.accounts.schemas import RemovalQuery
from posting.comments import queries, schemas, store, threads
from posting.comments.queries import NoSuchComment, get_comment_for_update
from posting.comments.search import INDEX
from posting.markdown import excerpt
from posting.moderation import log
from posting.posts.locks import lock_post
from posting.posts.queries import NoSuchPost, is_locked, post_exists
from posting.posts.texts import PreparedText, prepare_text
from posting.search.results import paginate_results
from posting.search.turns import SearchBusy
from posting.web.endpoint import SHARED, Blueprint, Reply
from posting.web.etags import Condition, etag_header
from posting.web.limits import Limit
from posting.web.pagination import paginate
from posting.web.problems import Coded
from posting.web.urls import external_url

LIMIT = Limit("comments", "LIMIT_COMMENTS", user_id)

comments = Blueprint("comments", __name__, description="Comments on posts, and replies to them")


class CommentEditForbidden(NotAuthor):
    description = "Only the author of a comment may edit it."


class CommentDeletionForbidden(NotAuthor):
    description = "Only the author of a comment or a moderator may delete it."


class PostLocked(Coded, Forbidden):
    error_code = "post_locked"
    description = "This post is locked: only moderators may comment on it."


@comments.get(
    "/comments",
    access=READERS,
    cache=SHARED,
    query=schemas.AllCommentsQuery(),
    returns=schemas.CommentWithPost(many=True),
    headers=["Link"],
    errors=[NoSuchUser, SearchBusy],
)
def list_all_comments(query: dict[str, Any]) -> Reply:
    """List the comments of the community, newest first: all, or those that a search finds.

    Deleted comments are left out.
    """
    limit, cursor, author = query["limit"], query.get("cursor"), query.get("author")
    statement = queries.COMMENTS_BY_AUTHOR if author else queries.COMMENTS_WITH_POSTS
    if words := query.get("q"):
        page = paginate_results(INDEX, statement, words, limit=limit, cursor=cursor, author=author)
    else:
        page = paginate(
            statement,
            limit=limit,
            cursor=cursor,
            name="list_comments",
            newest_first=True,
            parameters={"author": author},
        )
    if not page.items and author and not user_exists(author):
        raise NoSuchUser
    return page.items, page.headers


@comments.get(
    "/posts/<nanoid:id>/comments",
    access=READERS,
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
    access=READERS,
    cache=SHARED,
    query=schemas.CommentsQuery(),
    returns=schemas.CommentWithPost(many=True),
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


def prepare_comment(id: str, body: dict[str, Any]) -> PreparedText:
    """Prepare the text of a comment, if the current user may write it."""
    _require_unlocked(locked=is_locked(id))
    threads.get_parent(body.get("parent_id"), id)
    return prepare_text(INDEX, body)


@comments.post(
    "/posts/<nanoid:id>/comments",
    access=SIGNED_IN,
    limits=[LIMIT],
    body=schemas.CommentInput(),
    prepare=prepare_comment,
    idempotent=True,
    status=201,
    returns=schemas.Comment(),
    headers=["Location"],
    errors=[PostLocked, NoSuchPost],
)
def create_comment(id: str, body: dict[str, Any], prepared: PreparedText) -> Reply:
    """Comment on a post, or reply to a comment on it."""
    lock_current_user()
    _require_unlocked(locked=lock_post(id).locked)
    parent = threads.get_parent(body.get("parent_id"), id)
    comment = store.insert_comment(id, current_user.id, body, parent, prepared)
    comment["author"] = current_user.as_author()
    version = comment.pop("version")
    headers = etag_header(comment, version)
    headers["Location"] = external_url("comments.get_comment", id=comment["id"])
    return comment, headers


@comments.get(
    "/comments/<nanoid:id>",
    access=READERS,
    cache=SHARED,
    returns=schemas.Comment(),
    errors=[NoSuchComment],
)
def get_comment(id: str) -> Reply:
    """Read a comment."""
    comment = queries.get_comment(id)
    version = comment.pop("version")
    return comment, etag_header(comment, version)


def prepare_edit(id: str, body: dict[str, Any], condition: Condition) -> PreparedText:
    """Prepare the text of an edit, if the current user may edit the comment."""
    comment = queries.get_comment(id)
    if comment["content"] is None:
        raise NoSuchComment
    _check_edit(comment["author"] and comment["author"]["id"], condition, comment["version"])
    return prepare_text(INDEX, comment | body, former=comment["content"])


@comments.patch(
    "/comments/<nanoid:id>",
    access=SIGNED_IN,
    limits=[EDIT_LIMIT],
    body=schemas.CommentChange(partial=True),
    conditional=True,
    prepare=prepare_edit,
    returns=schemas.Comment(),
    errors=[CommentEditForbidden, NoSuchComment],
)
def edit_comment(
    id: str, body: dict[str, Any], condition: Condition, prepared: PreparedText
) -> Reply:
    """Edit your own comment."""
    comment = get_comment_for_update(id)
    _check_edit(comment.author_id, condition, comment.version, comment.updated_at)
    store.edit_comment(comment, body, prepared)
    edited = queries.get_comment(id)
    version = edited.pop("version")
    return edited, etag_header(edited, version)


@comments.delete(
    "/comments/<nanoid:id>",
    access=SIGNED_IN,
    query=RemovalQuery(),
    conditional=True,
    status=204,
    errors=[CommentDeletionForbidden, NoSuchComment],
)
def delete_comment(id: str, query: dict[str, str], condition: Condition) -> Reply:
    """Delete your own comment, or any comment as a moderator.

    A comment with replies is kept for them, without author and content.
    """
    comment = get_comment_for_update(id)
    if not may_delete(comment.author_id):
        raise CommentDeletionForbidden
    condition.require_version(comment.version, comment.updated_at)
    text, reason = excerpt(comment.content), query.get("reason")
    log.record_removal("comment", id, comment.author_id, excerpt=text, reason=reason)
    store.delete_comments([id])
    return None


def _require_unlocked(*, locked: bool) -> None:
    """Raise 403 if the post is locked, unless the current user is a moderator."""
    if locked and not current_user.is_moderator:
        raise PostLocked


def _check_edit(
    author_id: str | None, condition: Condition, version: int, updated_at: datetime | None = None
) -> None:
    """Raise 403 unless the current user is the author, and 412 unless the condition holds."""
    if not is_author(author_id):
        raise CommentEditForbidden
    condition.require_version(version, updated_at)
