"""Posts: list, read, write, edit, delete."""

from typing import Any

from werkzeug.exceptions import Forbidden

from posting.auth.login import SIGNED_IN, current_user, user_id
from posting.db import queries, search
from posting.db.engine import db, insert
from posting.db.errors import NoSuchPost
from posting.db.locks import get_post_for_update
from posting.db.models import Post
from posting.domain import moderation
from posting.domain.search import paginate_results
from posting.http import idempotency
from posting.http.endpoint import PUBLIC, Blueprint, Reply
from posting.http.etags import etag_header, require_match
from posting.http.pagination import paginate
from posting.http.rate_limits import Limit
from posting.http.urls import external_url, with_url
from posting.schemas import posts as schemas

LIMIT = Limit("posts", "LIMIT_POSTS", user_id)
MAX_CONTENT = 2**19  # characters on a page
# Lists of posts, by whether they have contents and are of one author.
LISTS = {
    (False, False): queries.POST_SUMMARIES,
    (False, True): queries.POST_SUMMARIES_OF_AUTHOR,
    (True, False): queries.POSTS_WITH_CONTENT,
    (True, True): queries.POSTS_WITH_CONTENT_OF_AUTHOR,
}

posts = Blueprint("posts", __name__, description="Texts of the community")


class PostEditForbidden(Forbidden):
    error_code = "not_author"
    description = "Only the author of a post may edit it."


class PostDeletionForbidden(Forbidden):
    error_code = "not_author"
    description = "Only the author of a post or a moderator may delete it."


@posts.get(
    "/posts",
    access=PUBLIC,
    query=schemas.PostsQuery(),
    returns=schemas.PostBrief(many=True),
    headers=["Link"],
)
def list_posts(query: dict[str, Any]) -> Reply:
    """List posts: the latest, or those that a search finds."""
    expand, order = query.pop("expand", frozenset()), queries.ORDERS[query.pop("sort")]
    statement = LISTS["content" in expand, "author" in query]
    longest = MAX_CONTENT if "content" in expand else None
    if words := query.pop("q", None):
        page = paginate_results(statement, query, words, max_length=longest)
    else:
        page = paginate(
            statement,
            query,
            name=order.name,
            time=order.time,
            newest_first=True,
            max_length=longest,
        )
    if "images" in expand:
        images = queries.get_images_of_posts([post["id"] for post in page.items])
        for post in page.items:
            post["images"] = [with_url("images.get_image", image) for image in images[post["id"]]]
    return page.items, page.headers


@posts.post(
    "/posts",
    access=SIGNED_IN,
    limit=LIMIT,
    body=schemas.PostInput(),
    idempotent=True,
    status=201,
    returns=schemas.Post(),
    headers=["ETag", "Location"],
)
def create_post(body: dict[str, Any]) -> Reply:
    """Write a post."""
    row = insert(Post, author_id=current_user.id, **body)
    search.index_posts([row])
    row["last_activity_at"] = row["created_at"]
    post = queries.to_item(row, Post.DETAIL) | {"author": current_user.as_author(), "images": []}
    headers = etag_header(row["version"])
    headers["Location"] = external_url("posts.get_post", id=row["id"])
    idempotency.save(post, headers)
    db.session.commit()
    return post, headers


@posts.get("/posts/<nanoid:id>", access=PUBLIC, returns=schemas.Post(), errors=[NoSuchPost])
def get_post(id: str) -> Reply:
    """Read a post."""
    return _detail(id)


@posts.patch(
    "/posts/<nanoid:id>",
    access=SIGNED_IN,
    body=schemas.PostInput(partial=True),
    if_match=True,
    returns=schemas.Post(),
    headers=["ETag"],
    errors=[PostEditForbidden, NoSuchPost],
)
def edit_post(id: str, body: dict[str, Any], if_match: str | None) -> Reply:
    """Edit your own post."""
    post = get_post_for_update(id)
    if not post.is_editable_by(current_user):
        raise PostEditForbidden
    require_match(if_match, post.version)
    post.assign(body)
    db.session.flush()
    search.reindex_post(post)
    edited = _detail(id)
    db.session.commit()
    return edited


@posts.delete(
    "/posts/<nanoid:id>",
    access=SIGNED_IN,
    if_match=True,
    status=204,
    errors=[PostDeletionForbidden, NoSuchPost],
)
def delete_post(id: str, if_match: str | None) -> Reply:
    """Delete your own post, or any post as a moderator."""
    post = get_post_for_update(id)
    if not post.is_deletable_by(current_user):
        raise PostDeletionForbidden
    require_match(if_match, post.version)
    moderation.record_deletion("post", id, post.author_id)
    db.session.delete(post)
    search.unindex_posts([(post.created_at, id)])
    db.session.commit()
    return None


def _detail(id: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a post with its images, and its ETag."""
    post = queries.get_post(id)
    images = queries.get_images_of_post(id) if post.pop("has_images") else []
    post["images"] = [with_url("images.get_image", image) for image in images]
    return post, etag_header(post.pop("version"))
