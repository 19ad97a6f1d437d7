"""Comments and replies: list, read, write, edit, delete."""

from functools import partial
from typing import Any

from werkzeug.exceptions import Forbidden

from posting.accounts import acts
from posting.accounts.current_user import (
    READERS,
    SIGNED_IN,
    current_user,
    lock_current_user,
    user_id,
)
from posting.accounts.events import Removal
from posting.accounts.permissions import NotAuthor, is_author, may_delete
from posting.accounts.queries import NoSuchUser, user_exists
from posting.accounts.schemas import RemovalQuery
from posting.comments import queries, schemas, store, threads
from posting.comments.queries import NoSuchComment, get_comment_for_update
from posting.comments.search import INDEX
from posting.db.transactions import commit
from posting.markdown import excerpt
from posting.posts.locks import lock_post
from posting.posts.queries import NoSuchPost, post_exists
from posting.posts.texts import PreparedText, prepare_text
from posting.search.results import SearchBusy, paginate_results
from posting.web.endpoint import SHARED, Blueprint, Reply
from posting.web.etags import etag_header, require_version
from posting.web.idempotency import Once
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


@comments.post(
    "/posts/<nanoid:id>/comments",
    access=SIGNED_IN,
    limit=LIMIT,
    body=schemas.CommentInput(),
    prepare=partial(prepare_text, INDEX),
    idempotent=True,
    status=201,
    returns=schemas.Comment(),
    headers=["ETag", "Location"],
    errors=[PostLocked, NoSuchPost],
)
def create_comment(id: str, body: dict[str, Any], prepared: PreparedText, once: Once) -> Reply:
    """Comment on a post, or reply to a comment on it."""
    lock_current_user()
    if lock_post(id).locked and not current_user.is_moderator:
        raise PostLocked
    parent = threads.get_parent(body.get("parent_id"), id)
    comment = store.insert_comment(id, current_user.id, body, parent, prepared)
    comment["author"] = current_user.as_author()
    headers = etag_header(comment.pop("version"))
    headers["Location"] = external_url("comments.get_comment", id=comment["id"])
    return once.commit(comment, headers)


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
    former = queries.get_comment(id)
    text = prepare_text(INDEX, former | body, former=former["content"])
    comment = get_comment_for_update(id)
    if not is_author(comment.author_id):
        raise CommentEditForbidden
    require_version(if_match, comment.version)
    store.edit_comment(comment, body, text)
    edited = queries.get_comment(id)
    commit()
    return edited, etag_header(edited.pop("version"))


@comments.delete(
    "/comments/<nanoid:id>",
    access=SIGNED_IN,
    query=RemovalQuery(),
    if_match=True,
    status=204,
    errors=[CommentDeletionForbidden, NoSuchComment],
)
def delete_comment(id: str, query: dict[str, str], if_match: str | None) -> Reply:
    """Delete your own comment, or any comment as a moderator.

    A comment with replies is kept for them, without author and content.
    """
    comment = get_comment_for_update(id)
    if not may_delete(comment.author_id):
        raise CommentDeletionForbidden
    require_version(if_match, comment.version)
    text = excerpt(comment.content[: queries.EXCERPT_LENGTH])
    removal = Removal("comment", id, comment.author_id, text, query.get("reason"))
    acts.record_removal(removal)
    store.delete_comments([id])
    commit()
    return None
