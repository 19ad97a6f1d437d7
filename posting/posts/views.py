"""Posts: list, read, write, edit, delete."""

from datetime import datetime
from typing import Any

from posting.accounts.current_user import (
    EDIT_LIMIT,
    READERS,
    SIGNED_IN,
    NotAuthor,
    current_user,
    current_user_id,
    is_author,
    may_delete,
)
from posting.accounts.schemas import RemovalQuery
from posting.accounts.store import NoSuchUser, user_exists
from posting.db.transactions import after_commit
from posting.files.store import list_files_of_posts, set_files
from posting.images.store import list_images_of_posts, set_images
from posting.moderation import log
from posting.posts import deletion, schemas, store
from posting.posts.store import INDEX, NoSuchPost, PreparedText, prepare_text
from posting.search.turns import SearchBusy
from posting.topics.store import NoSuchTopic, set_topics, topic_exists
from posting.web.endpoint import SHARED, Blueprint, Reply
from posting.web.etags import Condition, etag_header
from posting.web.hosts import external_url
from posting.web.limits import Limit

POST_LIMIT = Limit("posts", "LIMIT_POSTS", current_user_id)
MAX_CONTENT = 2**19  # characters on a page

posts = Blueprint("posts", __name__, description="Texts of the community")


class PostEditForbidden(NotAuthor):
    description = "Only the author of a post may edit it."


class PostDeletionForbidden(NotAuthor):
    description = "Only the author of a post or a moderator may delete it."


@posts.get(
    "/posts",
    access=READERS,
    cache=SHARED,
    query=schemas.PostsQuery(),
    returns=schemas.PostBrief(many=True),
    headers=["Link"],
    errors=[NoSuchUser, NoSuchTopic, SearchBusy],
)
def list_posts(query: dict[str, Any]) -> Reply:
    """List posts: the latest, or those that a search finds."""
    author, expand = query.get("author"), query.get("expand", frozenset())
    with_content = "content" in expand
    options: dict[str, Any] = {
        "limit": query["limit"],
        "cursor": query.get("cursor"),
        "author": author,
        "text": "whole" if with_content else "none",
        "max_length": MAX_CONTENT if with_content else None,
    }
    if words := query.get("q"):
        page = store.find_posts(words, **options)
    else:
        topic = query.get("topic")
        page = store.list_posts(
            sort=query["sort"], topic=topic, pinned="pinned" in query, **options
        )
        if not page.items and topic and not topic_exists(topic):
            raise NoSuchTopic
    if not page.items and author and not user_exists(author):
        raise NoSuchUser
    for name, list_of_posts in (("images", list_images_of_posts), ("files", list_files_of_posts)):
        if name in expand:
            found = list_of_posts([post["id"] for post in page.items])
            for post in page.items:
                post[name] = found[post["id"]]
    return page.items, page.headers


@posts.post(
    "/posts",
    access=SIGNED_IN,
    limits=[POST_LIMIT],
    body=schemas.PostInput(),
    prepare=lambda body: prepare_text(INDEX, body),
    idempotent=True,
    status=201,
    returns=schemas.Post(),
    headers=["Location"],
)
def create_post(body: dict[str, Any], prepared: PreparedText) -> Reply:
    """Write a post, with images and files that you have sent before, if you want."""
    image_ids, file_ids = body.pop("images", []), body.pop("files", [])
    topic_ids = body.pop("topics", [])
    post = store.insert_post(current_user.id, body, prepared)
    id = post["id"]
    post |= {"author": current_user.as_author(), "topics": [], "images": [], "files": []}
    if topic_ids:
        set_topics(topic_ids, id)
        post |= {"topics": store.get_post(id)["topics"]}
    if image_ids:
        set_images(image_ids, current_user.id, post_id=id)
        post |= {"images": list_images_of_posts([id])[id], "image_count": len(image_ids)}
    if file_ids:
        set_files(file_ids, current_user.id, post_id=id)
        post |= {"files": list_files_of_posts([id])[id], "file_count": len(file_ids)}
    version = post.pop("version")
    headers = etag_header(post, version)
    headers["Location"] = external_url("posts.get_post", id=id)
    return post, headers


@posts.get(
    "/posts/<nanoid:id>", access=READERS, cache=SHARED, returns=schemas.Post(), errors=[NoSuchPost]
)
def get_post(id: str) -> Reply:
    """Read a post."""
    return _detail(id)


def prepare_edit(id: str, body: dict[str, Any], condition: Condition) -> PreparedText:
    """Prepare the text of an edit, if the current user may edit the post."""
    post = store.get_post(id)
    _check_edit(post["author"] and post["author"]["id"], condition, post["version"])
    return prepare_text(INDEX, post | body, former=post["content"])


@posts.patch(
    "/posts/<nanoid:id>",
    access=SIGNED_IN,
    limits=[EDIT_LIMIT],
    body=schemas.PostInput(partial=True),
    conditional=True,
    prepare=prepare_edit,
    returns=schemas.Post(),
    errors=[PostEditForbidden, NoSuchPost],
)
def edit_post(id: str, body: dict[str, Any], condition: Condition, prepared: PreparedText) -> Reply:
    """Edit your own post."""
    post = store.get_post_for_update(id)
    _check_edit(post.author_id, condition, post.version, post.updated_at)
    image_ids, file_ids = body.pop("images", None), body.pop("files", None)
    has_others = image_ids is not None and set_images(image_ids, current_user.id, post_id=id)
    if file_ids is not None:
        has_others |= set_files(file_ids, current_user.id, post_id=id)
    if (topic_ids := body.pop("topics", None)) is not None:
        has_others |= set_topics(topic_ids, id)
    store.edit_post(post, body, prepared, is_edit=has_others)
    return _detail(id)


@posts.delete(
    "/posts/<nanoid:id>",
    access=SIGNED_IN,
    query=RemovalQuery(),
    conditional=True,
    status=204,
    errors=[PostDeletionForbidden, NoSuchPost],
)
def delete_post(id: str, query: dict[str, str], condition: Condition) -> Reply:
    """Delete your own post, or any post as a moderator."""
    post = store.get_post_for_update(id)
    if not may_delete(post.author_id):
        raise PostDeletionForbidden
    condition.require_version(post.version, post.updated_at)
    excerpt, reason = store.describe_post(post), query.get("reason")
    log.record_removal("post", id, post.author_id, excerpt=excerpt, reason=reason)
    deletion.delete_post(id)
    after_commit(deletion.finish_deletions)
    return None


def _check_edit(
    author_id: str | None, condition: Condition, version: int, updated_at: datetime | None = None
) -> None:
    """Raise 403 unless the current user is the author, and 412 unless the condition holds."""
    if not is_author(author_id):
        raise PostEditForbidden
    condition.require_version(version, updated_at)


def _detail(id: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a post with its images and files, and its ETag."""
    post = store.get_post(id)
    post["images"] = list_images_of_posts([id])[id] if post["image_count"] else []
    post["files"] = list_files_of_posts([id])[id] if post["file_count"] else []
    version = post.pop("version")
    return post, etag_header(post, version)
