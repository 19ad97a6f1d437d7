"""Posts: list, read, write, edit, delete."""

from typing import Any

from werkzeug.exceptions import Forbidden

from posting.auth.sessions import current_user, signed_in, user_id
from posting.db import locks
from posting.db.engine import db, insert, select
from posting.db.models import Image, Post
from posting.domain import moderation
from posting.http.endpoint import Blueprint, public
from posting.http.etags import IfMatch, require_match, versioned
from posting.http.idempotency import IdempotencyKey, idempotent
from posting.http.pagination import paginate
from posting.http.rate_limits import Limit, charge, limited
from posting.http.urls import external_url, with_url
from posting.schemas import posts as posts_schemas

LIMIT = Limit("posts", "LIMIT_POSTS")

posts = Blueprint("posts", __name__, description="What the community writes")


class PostEditForbidden(Forbidden):
    description = "Only its author may edit a post."


class PostDeletionForbidden(Forbidden):
    description = "Only its author or a moderator may delete a post."


@posts.get("/posts")
@public
@posts.arguments(posts_schemas.PostsQuery, location="query")
@posts.response(200, posts_schemas.PostBrief(many=True), headers={"Link": "Link"})
def list_posts(query: dict[str, Any]) -> Any:
    """List the latest posts."""
    rows = Post.briefs(of_author="author" in query)
    return paginate(rows, Post.brief, query, newest_first=True)


@posts.post("/posts")
@signed_in
@limited(LIMIT, user_id)
@posts.arguments(posts_schemas.PostInput)
@posts.arguments(IdempotencyKey, location="headers")
@idempotent
@posts.response(201, posts_schemas.Post, headers={"ETag": "ETag"})
def create_post(fields: dict[str, Any]) -> Any:
    """Write a post."""
    post_id = insert(Post, author_id=user_id(), **fields)
    charge((LIMIT, user_id()))
    shown, headers = _shown(post_id)
    return shown, headers | {"Location": external_url("posts.get_post", id=post_id)}


@posts.get("/posts/<nanoid:id>")
@public
@posts.answers(locks.NoSuchPost)
@posts.response(200, posts_schemas.Post)
def get_post(id: str) -> Any:
    """Read a post."""
    return _shown(id)


@posts.patch("/posts/<nanoid:id>")
@signed_in
@posts.arguments(posts_schemas.PostInput(partial=True))
@posts.arguments(IfMatch, location="headers")
@posts.answers(PostEditForbidden, locks.NoSuchPost)
@posts.response(200, posts_schemas.Post, headers={"ETag": "ETag"})
def edit_post(changes: dict[str, Any], condition: dict[str, str], id: str) -> Any:
    """Edit a post of one's own."""
    post = locks.get_post_for_update(id)
    if not post.editable_by(current_user()):
        raise PostEditForbidden
    require_match(condition, post.version)
    post.assign(changes)
    db.session.flush()
    answer = _shown(id)
    db.session.commit()
    return answer


@posts.delete("/posts/<nanoid:id>")
@signed_in
@posts.arguments(IfMatch, location="headers")
@posts.answers(PostDeletionForbidden, locks.NoSuchPost)
@posts.response(204)
def delete_post(condition: dict[str, str], id: str) -> Any:
    """Delete a post of one's own, or any post as a moderator."""
    post = locks.get_post_for_update(id)
    if not post.deletable_by(current_user()):
        raise PostDeletionForbidden
    require_match(condition, post.version)
    moderation.record_deletion("post", id, post.author_id)
    db.session.delete(post)
    db.session.commit()


def _shown(id: str) -> tuple[dict[str, Any], dict[str, str]]:
    rows = select(Post.whole(), id=id)
    if not rows:
        raise locks.NoSuchPost
    *brief, content, version, has_images = rows[0]
    images = select(Image.of_post(), post=id) if has_images else ()
    urls = [with_url("images.get_image", row._mapping) for row in images]
    return Post.brief(brief) | {"content": content, "images": urls}, versioned(version)
