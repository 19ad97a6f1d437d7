"""The SQL of topics. Owners are locked while topics change, and a post while its topics change.

A topic of a post repeats the times of the post. So a list of a topic takes its posts from an index,
as the list of all posts does.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import sqlalchemy as sa
from werkzeug.exceptions import Conflict

from posting.db.base import Identifier
from posting.db.editing import edit
from posting.db.transactions import Row, execute, fetch_all, fetch_one
from posting.db.types import Position, UtcDateTime, new_id, now
from posting.posts.models import Post
from posting.topics import schemas
from posting.topics.models import MAX_TOPICS, PostTopic, Topic
from posting.web.errors import Coded, InvalidInput, Message, NoSuch, input_error
from posting.web.schemas import Item, insert, select, to_item, to_items

POSTS_PER_STEP = 1000
NOT_A_TOPIC = Message("no_such_topic", "Must be a topic.")

_TOPICS = select(schemas.Topic, Topic)
_ONE = _TOPICS.where(Topic.id == sa.bindparam("id"))
_COLUMNS = sa.select(Topic.__table__).where(Topic.id == sa.bindparam("id")).with_for_update()
_OF_POSTS = (
    select(schemas.TopicOfPost, Topic)
    .add_columns(PostTopic.post_id)
    .join(PostTopic, PostTopic.topic_id == Topic.id)
    .where(PostTopic.post_id.in_(sa.bindparam("posts", expanding=True)))
)
# The topics are locked against their deletion, by a lock that others share.
_KEEP = (
    sa.select(Topic.id)
    .where(Topic.id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(Topic.id)
    .with_for_update(read=True, key_share=True)
)
_OF_POST = sa.select(PostTopic.topic_id).where(PostTopic.post_id == sa.bindparam("post"))
_REFRESH = (
    sa.update(PostTopic)
    .where(PostTopic.post_id == Post.id, Post.id.in_(sa.bindparam("posts", expanding=True)))
    .values(last_activity_at=Post.last_activity_at)
)


_SOME_POSTS = (
    sa.select(PostTopic.post_id)
    .where(PostTopic.topic_id == sa.bindparam("id"))
    .limit(sa.bindparam("limit", type_=sa.Integer()))
)


class NoSuchTopic(NoSuch, thing="topic"):
    pass


class TopicTaken(Coded, Conflict):
    error_code = "topic_taken"
    description = "Another topic has this name."
    errors = (input_error(Message(error_code, description), pointer="/name"),)


class TooManyTopics(Coded, Conflict):
    error_code = "too_many_topics"
    description = f"There are {MAX_TOPICS} topics; delete one of them first."


def list_topics() -> list[Item]:
    """Return all topics by name."""
    return sorted(to_items(fetch_all(_TOPICS)), key=_by_name)


def get_topic(id: str) -> Item:
    """Return a topic. Raise NoSuchTopic."""
    topic = fetch_one(_ONE, id=id)
    if topic is None:
        raise NoSuchTopic
    return to_item(topic)


def topic_exists(id: str) -> bool:
    return fetch_one(_ONE, id=id) is not None


def lock_topic(id: str) -> Row:
    """Lock a topic, and return its columns. Raise NoSuchTopic."""
    topic = execute(_COLUMNS, id=id).one_or_none()
    if topic is None:
        raise NoSuchTopic
    return topic


def insert_topic(body: Mapping[str, str]) -> Item:
    """Insert a topic, while the owners are locked. Raise TooManyTopics or TopicTaken."""
    others = list_topics()
    if len(others) >= MAX_TOPICS:
        raise TooManyTopics
    _require_free(body["name"], others)
    values = {"id": new_id(), "created_at": now(), **body}
    return to_item(execute(insert(schemas.Topic, Topic), **values).one())


def edit_topic(topic: Row, changes: Mapping[str, str]) -> bool:
    """Edit a locked topic, while the owners are locked. Return whether this changes it.

    Raise TopicTaken.
    """
    if "name" in changes:
        others = [other for other in list_topics() if other["id"] != topic.id]
        _require_free(changes["name"], others)
    return edit(Topic, topic, changes)


def _require_free(name: str, others: Sequence[Item]) -> None:
    if name.casefold() in {other["name"].casefold() for other in others}:
        raise TopicTaken


def clear_step(id: str) -> bool:
    """Take a topic from some of its posts. Return whether it may have others."""
    ids = [row.post_id for row in fetch_all(_SOME_POSTS, id=id, limit=POSTS_PER_STEP)]
    execute(sa.select(Post.id).where(Post.id.in_(ids)).order_by(Post.id).with_for_update())
    execute(sa.delete(PostTopic).where(PostTopic.topic_id == id, PostTopic.post_id.in_(ids)))
    return len(ids) == POSTS_PER_STEP


def delete_topic(id: str) -> None:
    """Delete a topic, and take it from the posts that have got it since the last step."""
    execute(sa.delete(Topic).where(Topic.id == id))


def set_topics(ids: Sequence[str], post_id: str) -> bool:
    """Give topics to a locked post in place of its former ones. Return whether this changes them.

    Raise 422 at the first id of anything else.
    """
    former = {row.topic_id for row in fetch_all(_OF_POST, post=post_id)}
    if former == set(ids):
        return False
    kept = set(execute(_KEEP, ids=[*ids]).scalars())
    for place, id in enumerate(ids):
        if id not in kept:
            raise InvalidInput.at(f"/topics/{place}", NOT_A_TOPIC)
    is_former = sa.and_(PostTopic.post_id == post_id, PostTopic.topic_id.in_(former - kept))
    execute(sa.delete(PostTopic).where(is_former))
    times = sa.select(Post.id, Topic.id, Post.created_at, Post.last_activity_at)
    values = times.join_from(Post, Topic, Topic.id.in_(kept - former)).where(Post.id == post_id)
    names = ["post_id", "topic_id", "created_at", "last_activity_at"]
    execute(sa.insert(PostTopic).from_select(names, values))
    execute(sa.update(Post).where(Post.id == post_id).values(has_topics=bool(kept)))
    return True


def refresh_activity(post_ids: Collection[str]) -> None:
    """Repeat the time of the last activity of locked posts in their topics."""
    execute(_REFRESH, posts=[*post_ids])


def add_topics(posts: Sequence[Item]) -> None:
    """Replace `has_topics` of posts by their topics."""
    ids = [post["id"] for post in posts if post["has_topics"]]
    found: dict[str, list[Item]] = {id: [] for id in ids}
    for topic in to_items(fetch_all(_OF_POSTS, posts=ids)) if ids else []:
        found[topic.pop("post_id")].append(topic)
    for post in posts:
        del post["has_topics"]
        post["topics"] = sorted(found.get(post["id"], []), key=_by_name)


def _by_name(topic: Item) -> tuple[str, str]:
    return topic["name"].casefold(), topic["id"]


def find_in_topic(id: str, time: str) -> Callable[[Position | None, int], list[Position]]:
    """Return a function for `paginate` that finds the posts of a topic, latest first.

    `time` is `created_at` or `last_activity_at`.
    """
    column = getattr(PostTopic, time)
    place = sa.tuple_(column, PostTopic.post_id)

    def find(after: Position | None, limit: int) -> list[Position]:
        rows = sa.select(column.label("time"), PostTopic.post_id).where(PostTopic.topic_id == id)
        if after:
            there = sa.literal(after[0], UtcDateTime()), sa.literal(after[1], Identifier)
            rows = rows.where(place < sa.tuple_(*there), column <= there[0])
        rows = rows.order_by(column.desc(), PostTopic.post_id.desc()).limit(limit)
        return [(row.time, row.post_id) for row in fetch_all(rows)]

    return find
