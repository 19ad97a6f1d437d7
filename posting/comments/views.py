"""Comments and replies: list, read, write, edit, delete."""

from datetime import datetime
from typing import Any

from werkzeug.exceptions import Forbidden

from posting.accounts.current_user import (
    EDIT_LIMIT,
    READERS,
    SIGNED_IN,
    NotAuthor,
    current_user,
    current_user_id,
    is_author,
    lock_current_user,
    may_delete,
)
from posting.accounts.schemas import RemovalQuery
from posting.accounts.store import NoSuchUser, user_exists
from posting.comments import schemas, store
from posting.comments.deletion import delete_comments
from posting.comments.store import INDEX, NoSuchComment
from posting.files.store import add_files_to_comments, set_files
from posting.images.store import add_images_to_comments, set_images
from posting.markdown import excerpt
from posting.moderation import log
from posting.posts.store import (
    NoSuchPost,
    PreparedText,
    is_locked,
    lock_post,
    post_exists,
    prepare_text,
)
from posting.search.turns import SearchBusy
from posting.web.endpoint import SHARED, Blueprint, Reply
from posting.web.errors import Coded, InvalidInput
from posting.web.etags import Condition, etag_header
from posting.web.hosts import external_url
from posting.web.limits import Limit

COMMENT_LIMIT = Limit("comments", "LIMIT_COMMENTS", current_user_id)

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
    author = query.get("author")
    options = {"limit": query["limit"], "cursor": query.get("cursor"), "author": author}
    words = query.get("q")
    page = store.find_comments(words, **options) if words else store.list_comments(**options)
    if not page.items and author and not user_exists(author):
        raise NoSuchUser
    return _add_attachments(page.items), page.headers


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
    page = store.list_comments_on(
        id,
        limit=query["limit"],
        cursor=query.get("cursor"),
        name=f"{id}-newest" if newest_first else id,
        newest_first=newest_first,
    )
    if not page.items and not post_exists(id):
        raise NoSuchPost
    return _add_attachments(page.items), page.headers


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
    page = store.list_comments(limit=query["limit"], cursor=query.get("cursor"), author=id, name=id)
    if not page.items and not user_exists(id):
        raise NoSuchUser
    return _add_attachments(page.items), page.headers


def prepare_comment(id: str, body: dict[str, Any]) -> PreparedText:
    """Prepare the text of a comment, if the current user may write it."""
    _require_unlocked(locked=is_locked(id))
    try:
        store.get_parent(body.get("parent_id"), id)
    except InvalidInput:
        is_locked(id)  # 404 if the post was deleted meanwhile, with the parent
        raise
    return prepare_text(INDEX, body)


@comments.post(
    "/posts/<nanoid:id>/comments",
    access=SIGNED_IN,
    limits=[COMMENT_LIMIT],
    body=schemas.CommentInput(),
    prepare=prepare_comment,
    idempotent=True,
    status=201,
    returns=schemas.Comment(),
    headers=["Location"],
    errors=[PostLocked, NoSuchPost],
)
def create_comment(id: str, body: dict[str, Any], prepared: PreparedText) -> Reply:
    """Comment on a post, or reply to a comment on it, perhaps with images and files sent before."""
    lock_current_user()
    _require_unlocked(locked=lock_post(id).locked)
    parent = store.get_parent(body.get("parent_id"), id)
    image_ids, file_ids = body.pop("images", []), body.pop("files", [])
    comment = store.insert_comment(id, current_user.id, body, parent, prepared)
    comment |= {"author": current_user.as_author()}
    comment |= {"image_count": len(image_ids), "file_count": len(file_ids)}
    if image_ids:
        set_images(image_ids, current_user.id, post_id=id, comment_id=comment["id"])
    if file_ids:
        set_files(file_ids, current_user.id, post_id=id, comment_id=comment["id"])
    _add_attachments([comment])
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
    return _detail(id)


def prepare_edit(id: str, body: dict[str, Any], condition: Condition) -> PreparedText:
    """Prepare the text of an edit, if the current user may edit the comment."""
    comment = store.get_comment(id)
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
    comment = store.get_comment_for_update(id)
    _check_edit(comment.author_id, condition, comment.version, comment.updated_at)
    image_ids, file_ids = body.pop("images", None), body.pop("files", None)
    owner_id, post_id, has_others = current_user.id, comment.post_id, False
    if image_ids is not None:
        has_others = set_images(image_ids, owner_id, post_id=post_id, comment_id=id)
    if file_ids is not None:
        has_others |= set_files(file_ids, owner_id, post_id=post_id, comment_id=id)
    store.edit_comment(comment, body, prepared, is_edit=has_others)
    return _detail(id)


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
    comment = store.get_comment_for_update(id)
    if not may_delete(comment.author_id):
        raise CommentDeletionForbidden
    condition.require_version(comment.version, comment.updated_at)
    text, reason = excerpt(comment.content), query.get("reason")
    log.record_removal("comment", id, comment.author_id, excerpt=text, reason=reason)
    delete_comments([id])
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


def _detail(id: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a comment with its images and files, and its ETag."""
    comment = store.get_comment(id)
    _add_attachments([comment])
    version = comment.pop("version")
    return comment, etag_header(comment, version)


def _add_attachments(comments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Replace the numbers of images and files of comments by these. Return the comments."""
    add_images_to_comments(comments)
    add_files_to_comments(comments)
    return comments
