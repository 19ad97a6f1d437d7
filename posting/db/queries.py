"""The SELECTs of the API, and the functions that turn their rows into response data.

A model's tuples of column names say what is sent; the statements are built once.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from posting.db.engine import Base, db, fetch_all, fetch_one
from posting.db.errors import NoSuchComment, NoSuchImage, NoSuchPost, NoSuchUser
from posting.db.models import Comment, Image, ImageData, ModerationAction, Post, User
from posting.db.types import Rfc3339Text, UtcDateTime, to_rfc3339

Item = dict[str, Any]


class Order(NamedTuple):
    """An order of posts, newest first: its name in cursors, and the timestamp that it goes by."""

    name: str
    time: str


ORDERS = {
    "new": Order("list_posts", "created_at"),
    "active": Order("active_posts", "last_activity_at"),
}


def columns(model: type[Base], names: tuple[str, ...]) -> Iterator[sa.ColumnElement[Any]]:
    """Yield columns to select, in the form and order in which they are sent."""
    for name in names:
        column = getattr(model, name)
        if isinstance(column.type, UtcDateTime):
            column = sa.type_coerce(column, Rfc3339Text())
        yield column.label("author" if name == "author_id" else name)


AUTHOR = (User.username, User.display_name)

POST_SUMMARIES = sa.select(*columns(Post, Post.SUMMARY), *AUTHOR).outerjoin(Post.author)
POST_SUMMARIES_OF_AUTHOR = POST_SUMMARIES.where(Post.author_id == sa.bindparam("author"))
POSTS_WITH_CONTENT = POST_SUMMARIES.add_columns(Post.content)
POSTS_WITH_CONTENT_OF_AUTHOR = POSTS_WITH_CONTENT.where(Post.author_id == sa.bindparam("author"))
# With the beginning of their content, for pages.
POST_EXCERPTS = POST_SUMMARIES.add_columns(sa.func.substr(Post.content, 1, 400).label("content"))
POST_EXCERPTS_OF_AUTHOR = POST_EXCERPTS.where(Post.author_id == sa.bindparam("author"))
POST = (
    sa.select(*columns(Post, Post.DETAIL), *AUTHOR)
    .add_columns(Post.version, sa.exists().where(Image.post_id == Post.id).label("has_images"))
    .outerjoin(Post.author)
    .where(Post.id == sa.bindparam("id"))
)
COMMENTS = sa.select(*columns(Comment, Comment.PUBLIC), *AUTHOR).outerjoin(
    User, User.id == Comment.author_id
)
COMMENTS_ON_POST = COMMENTS.where(Comment.post_id == sa.bindparam("post"))
COMMENTS_OF_AUTHOR = COMMENTS.where(Comment.author_id == sa.bindparam("author"))
# The time of the last comment on a post. It is no placeholder: those have replies, which are newer.
LAST_COMMENT_AT = (
    sa.select(sa.func.max(Comment.created_at)).where(Comment.post_id == Post.id).scalar_subquery()
)
COMMENT = COMMENTS.add_columns(Comment.version).where(Comment.id == sa.bindparam("id"))
IMAGES = sa.select(*columns(Image, Image.PUBLIC))
IMAGES_OF_POST = IMAGES.where(Image.post_id == sa.bindparam("post")).order_by(
    Image.created_at, Image.id
)
IMAGES_OF_POSTS = (
    IMAGES.add_columns(Image.post_id)
    .where(Image.post_id.in_(sa.bindparam("posts", expanding=True)))
    .order_by(Image.created_at, Image.id)
)
IMAGE = IMAGES.where(Image.id == sa.bindparam("id"))
IMAGE_FILE = sa.select(Image.media_type, ImageData.data).join_from(ImageData, Image)
IMAGE_FILE = IMAGE_FILE.where(Image.id == sa.bindparam("id"))
IMAGE_TYPE = sa.select(Image.media_type).where(Image.id == sa.bindparam("id"))
USERS = sa.select(*columns(User, User.PUBLIC))
USER = USERS.where(User.id == sa.bindparam("id"))
USER_BY_NAME = USERS.where(sa.func.lower(User.username) == sa.bindparam("username"))


def to_items(rows: Sequence[sa.Row[Any]]) -> list[Item]:
    """Return rows of posts or comments; an author is an object, or None if the account is gone."""
    names = rows[0]._fields if rows else ()
    items = []
    for row in rows:
        item = dict(zip(names, row, strict=True))  # much faster than `Row._asdict`
        username, display_name = item.pop("username"), item.pop("display_name")
        if author_id := item["author"]:
            item["author"] = {"id": author_id, "username": username, "display_name": display_name}
        items.append(item)
    return items


def to_user(user: User) -> Item:
    return to_item({name: getattr(user, name) for name in User.PUBLIC}, User.PUBLIC)


def to_item(values: Mapping[str, Any], names: tuple[str, ...]) -> Item:
    """Return the columns of a row as they are sent."""
    item = {"author" if name == "author_id" else name: values.get(name) for name in names}
    for name, value in item.items():
        if isinstance(value, datetime):
            item[name] = to_rfc3339(value)
    return item


def get_post(id: str) -> Item:
    """Return a post with `version` and `has_images`. Raise NoSuchPost."""
    row = fetch_one(POST, id=id)
    if row is None:
        raise NoSuchPost
    [item] = to_items([row])
    return item


def post_exists(id: str) -> bool:
    return fetch_one(sa.select(Post.id).where(Post.id == id)) is not None


def user_exists(id: str) -> bool:
    return fetch_one(sa.select(User.id).where(User.id == id)) is not None


def get_comment(id: str) -> Item:
    """Return a comment with `version`. Raise NoSuchComment."""
    row = fetch_one(COMMENT, id=id)
    if row is None:
        raise NoSuchComment
    [item] = to_items([row])
    return item


def get_image(id: str) -> Item:
    """Return an image without its bytes. Raise NoSuchImage."""
    row = fetch_one(IMAGE, id=id)
    if row is None:
        raise NoSuchImage
    return row._asdict()


def get_images_of_post(id: str) -> list[Item]:
    """Return the images of a post in the order in which they were added."""
    return [row._asdict() for row in fetch_all(IMAGES_OF_POST, post=id)]


def get_images_of_posts(ids: Sequence[str]) -> dict[str, list[Item]]:
    """Return the images of several posts by the id of their post, as `get_images_of_post` does."""
    images: dict[str, list[Item]] = {id: [] for id in ids}
    for row in fetch_all(IMAGES_OF_POSTS, posts=list(ids)):
        image = row._asdict()
        images[image.pop("post_id")].append(image)
    return images


def get_user(id: str) -> Item:
    """Return a user. Raise NoSuchUser."""
    row = fetch_one(USER, id=id)
    if row is None:
        raise NoSuchUser
    return row._asdict()


def find_user(username: str) -> Item | None:
    """Return the user with this name, if there is one."""
    row = fetch_one(USER_BY_NAME, username=username.lower())
    return row._asdict() if row else None


def get_moderation_log(limit: int) -> sa.ScalarResult[ModerationAction]:
    """Return the latest actions of moderators and operators, newest first."""
    table = ModerationAction
    latest = sa.select(table).order_by(table.created_at.desc(), table.id).limit(limit)
    return db.session.scalars(latest)
