"""The SQL of posts: lists, single posts, locks, and changes with what they cause.

All code locks rows in one order, so that no two requests wait for each other: rate-limit windows,
the current user's account, the epoch to pin a post, posts by id, images and then files that no text
has by id, topics by id, reports, idempotency keys, and last what `posting.db.purge` deletes. Only
mentions lock their window later, after the post. A request that holds this window waits for nothing
else except an idempotency key, so that is safe.

Comments, images, files, reactions and the topics of a post are changed only by the holder of its
lock, who also deletes the notifications about them; other code skips notifications that are locked.
With one exception: a topic that is deleted is also taken from posts that have got it since the last
step of its deletion. A purge skips a locked epoch. On SQLite a writing transaction excludes all
others, and `FOR UPDATE` does nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import sqlalchemy as sa

from posting.accounts.mentions import find_mentions
from posting.changes import store as changes
from posting.db.editing import edit
from posting.db.epoch import Epoch
from posting.db.transactions import Row, execute, fetch_all, fetch_one, fetch_value
from posting.db.types import Position, new_id, now
from posting.markdown import BEGINNING, excerpt, shorten
from posting.notifications.telling import tell_of_post
from posting.posts import schemas
from posting.posts.models import Post
from posting.search.index import Index
from posting.search.results import paginate_results
from posting.search.words import RowData, RowWords
from posting.topics.store import add_topics, find_in_topic
from posting.web.errors import NoSuch
from posting.web.pagination import Page, paginate
from posting.web.schemas import Item, insert, select, to_item, to_items

# How much of the text of each post a list has.
Text = Literal["none", "beginning", "whole"]

# For each order of a list: the name in its cursors, and the column of its time.
ORDERS = {"new": ("list_posts", "created_at"), "active": ("active_posts", "last_activity_at")}


class NoSuchPost(NoSuch, thing="post"):
    pass


@dataclass(frozen=True)
class PreparedText:
    """The words of a row, and the names that its content mentions and its former content did not.

    They are found before the transaction begins, since this may take 0.2 seconds.
    """

    words: RowWords
    mentions: frozenset[str]


_IS_IT = sa.and_(Post.id == sa.bindparam("id"), Post.deleted_at.is_(None))
_POST = select(schemas.Post, Post).add_columns(Post.version, Post.has_topics).where(_IS_IT)
_ID = sa.select(Post.id).where(_IS_IT)
_LOCKED = sa.select(Post.locked.label("locked")).where(_IS_IT)
_LOCK_POST = _LOCKED.with_for_update()
_MARKS = sa.select(Post.locked_at, Post.pinned_at).where(_IS_IT)
_GET_FOR_UPDATE = sa.select(Post.__table__).where(_IS_IT).with_for_update()
_INSERT = insert(schemas.Post, Post).returning(Post.version)


@cache
def _select(text: Text, *, by_author: bool = False) -> sa.Select[*tuple[Any, ...]]:
    """Return the SELECT of a list of posts, perhaps of those by the parameter `author`."""
    statement = select(schemas.PostBrief, Post, without=() if text == "whole" else ("content",))
    statement = statement.add_columns(Post.has_topics).where(Post.deleted_at.is_(None))
    if text == "beginning":
        content = sa.func.substr(Post.content, 1, BEGINNING)
        statement = statement.add_columns(content.label("content"))
    return statement.where(Post.author_id == sa.bindparam("author")) if by_author else statement


_IS_PINNED = Post.pinned_at.is_not(None)
_PINNED = _select("beginning").where(_IS_PINNED).order_by(Post.pinned_at.desc(), Post.id)
_PINNED_PLACES = sa.select(Post.created_at, Post.id).where(_IS_PINNED)


def list_posts(
    *,
    limit: int,
    cursor: str | None,
    sort: str = "new",
    author: str | None = None,
    topic: str | None = None,
    pinned: bool = False,
    text: Text = "none",
    max_length: int | None = None,
    parameter: str = "cursor",
) -> Page:
    """Return a page of all posts, of those of an author or of a topic, or of the pinned ones.

    See `paginate` for `max_length` and `parameter`.
    """
    name, time = ORDERS[sort]
    find = find_in_topic(topic, time) if topic else None
    page = paginate(
        _select(text, by_author=author is not None),
        limit=limit,
        cursor=cursor,
        name=f"{name}-{topic}" if topic else name,
        time=time,
        newest_first=True,
        parameters={"author": author},
        max_length=max_length,
        parameter=parameter,
        find=_list_pinned_positions if pinned else find,
    )
    add_topics(page.items)
    return page


def find_posts(
    words: str,
    *,
    limit: int,
    cursor: str | None,
    author: str | None = None,
    text: Text = "none",
    max_length: int | None = None,
) -> Page:
    """Return a page of the posts, perhaps of an author, in which all words occur, newest first.

    Raise SearchBusy.
    """
    page = paginate_results(
        INDEX,
        _select(text, by_author=author is not None),
        words,
        limit=limit,
        cursor=cursor,
        author=author,
        max_length=max_length,
    )
    add_topics(page.items)
    return page


def list_pinned_posts() -> list[Item]:
    """Return the pinned posts with the beginning of their text, the last pinned first."""
    posts = to_items(fetch_all(_PINNED))
    add_topics(posts)
    return posts


def _list_pinned_positions(after: Position | None, limit: int) -> list[Position]:
    """Return the positions of pinned posts, newest first, after one of them.

    For `paginate`: SQLite would go through all posts in its order to find the five.
    """
    places = [(row.created_at, row.id) for row in fetch_all(_PINNED_PLACES)]
    return sorted((place for place in places if not after or place < after), reverse=True)[:limit]


def get_post(id: str) -> Item:
    """Return a post with `version`. Raise NoSuchPost."""
    post = to_item(_found(fetch_one(_POST, id=id)))
    add_topics([post])
    return post


def get_marks(id: str) -> Row:
    """Return since when a post is locked, and since when it is pinned. Raise NoSuchPost."""
    return _found(fetch_one(_MARKS, id=id))


def is_locked(id: str) -> bool:
    """Return whether members may not comment on a post. Raise NoSuchPost."""
    return bool(_found(fetch_one(_LOCKED, id=id)).locked)


def post_exists(id: str) -> bool:
    return fetch_one(_ID, id=id) is not None


def count_posts_by(author_id: str) -> int:
    """Return how many posts a user has written."""
    count: int = fetch_value(sa.select(sa.func.count()).where(Post.author_id == author_id))
    return count


def lock_post(id: str) -> Row:
    """Lock the row of a post, and return it with `locked`: whether only moderators may comment.

    Raise NoSuchPost.
    """
    return _found(execute(_LOCK_POST, id=id).one_or_none())


def get_post_for_update(id: str) -> Row:
    """Lock the row of a post, and return its columns. Raise NoSuchPost."""
    return _found(execute(_GET_FOR_UPDATE, id=id).one_or_none())


def _found(row: Row | None) -> Row:
    if row is None:
        raise NoSuchPost
    return row


def select_for_update(condition: sa.ColumnElement[bool]) -> sa.Select[str]:
    """Return the SELECT that locks the rows of the posts that match a condition."""
    return sa.select(Post.id).where(condition).order_by(Post.id).with_for_update()


def lock_posts(condition: sa.ColumnElement[bool]) -> None:
    """Lock the rows of the posts that match a condition."""
    execute(select_for_update(condition))


INDEX = Index(
    "post", Post, ["title", "content"], lock=lambda ids: select_for_update(Post.id.in_(ids))
)


def prepare_text(index: Index, row: RowData, *, former: str | None = None) -> PreparedText:
    """Return what is found in a row whose `content` was `former`."""
    content = row["content"] or ""
    mentions: frozenset[str] = frozenset()
    if content != former:
        mentions = find_mentions(content) - find_mentions(former or "")
    return PreparedText(index.split(row), mentions)


def describe_post(post: Row) -> str:
    """Return the title of a post and the beginning of its text, in one line."""
    return shorten(f"{post.title}: {excerpt(post.content)}")


def insert_post(author_id: str, body: Mapping[str, Any], text: PreparedText) -> Item:
    """Insert a post, and return it with `version`, and with the id of its author."""
    values = {"id": new_id(), "created_at": now(), "author_id": author_id, **body}
    # SQLAlchemy inserts the columns that are named here. The defaults of the model fill the others.
    post = to_item(execute(_INSERT, **values).one())
    INDEX.add([(values | {"version": post["version"]}, text.words)])
    tell_of_post(post["id"], author_id, text.mentions)
    changes.record_change("post", post["id"], post["id"], "created")
    return post


def insert_posts(rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert new posts by their columns, without `version`."""
    execute(sa.insert(Post), rows)
    INDEX.add(INDEX.split_all([{**row, "version": 1} for row in rows]))


def edit_post(
    post: Row, values: Mapping[str, Any], text: PreparedText, *, is_edit: bool = False
) -> None:
    """Edit a post whose row is locked. With `is_edit`, it has got other images or files."""
    if edit(Post, post, values, is_edit=is_edit):
        INDEX.replace({**post._mapping, **values, "version": post.version + 1}, text.words)
        tell_of_post(post.id, post.author_id, text.mentions)
        changes.record_change("post", post.id, post.id, "edited")


def lock_pins() -> None:
    """Lock what is pinned, before a post, so that posts are pinned one after the other."""
    execute(sa.select(Epoch.id).with_for_update())


def count_other_pinned_posts(id: str) -> int:
    """Return how many posts are pinned, without the post with this id."""
    others = sa.select(sa.func.count()).where(Post.pinned_at.is_not(None), Post.id != id)
    count: int = fetch_value(others)
    return count


def close_discussion(post: Row) -> bool:
    """Let only moderators comment on a post. Return whether this changes anything."""
    return _mark(post, "locked_at", is_marked=True)


def open_discussion(post: Row) -> bool:
    """Let all members comment on a post again. Return whether this changes anything."""
    return _mark(post, "locked_at", is_marked=False)


def pin_post(post: Row) -> bool:
    """Pin a post to the front page. Return whether this changes anything."""
    return _mark(post, "pinned_at", is_marked=True)


def unpin_post(post: Row) -> bool:
    """Take a post from the top of the front page. Return whether this changes anything."""
    return _mark(post, "pinned_at", is_marked=False)


def _mark(post: Row, name: str, *, is_marked: bool) -> bool:
    """Set or clear a timestamp of a post whose row is locked.

    This is not an edit, so the post keeps its version.
    """
    if (getattr(post, name) is not None) == is_marked:
        return False
    execute(sa.update(Post).where(Post.id == post.id).values({name: now() if is_marked else None}))
    changes.record_change("post", post.id, post.id, "edited")
    return True
