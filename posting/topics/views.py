"""Topics: list, and for owners create, edit and delete."""

from posting.accounts.current_user import EDIT_LIMIT, OWNER_SESSION_REQUIRED, READERS, lock_as_owner
from posting.db.transactions import unit_of_work
from posting.moderation import log
from posting.topics import schemas, store
from posting.topics.store import NoSuchTopic, TooManyTopics, TopicTaken
from posting.web.endpoint import SHARED, Blueprint, Reply
from posting.web.etags import Condition, etag_header
from posting.web.hosts import external_url

topics = Blueprint("topics", __name__, description="Topics of posts")


@topics.get("/topics", access=READERS, cache=SHARED, returns=schemas.Topic(many=True))
def list_topics() -> Reply:
    """List the topics by name. There are 30 at most."""
    return store.list_topics()


@topics.post(
    "/topics",
    access=OWNER_SESSION_REQUIRED,
    limits=[EDIT_LIMIT],
    body=schemas.TopicInput(),
    idempotent=True,
    status=201,
    returns=schemas.Topic(),
    headers=["Location"],
    errors=[TooManyTopics, TopicTaken],
)
def create_topic(body: dict[str, str]) -> Reply:
    """Create a topic."""
    lock_as_owner()
    topic = store.insert_topic(body)
    log.record_act("created", "topic", topic["id"], None, reason=topic["name"])
    location = external_url("topics.get_topic", id=topic["id"])
    return topic, etag_header(topic) | {"Location": location}


@topics.get(
    "/topics/<nanoid:id>",
    access=READERS,
    cache=SHARED,
    returns=schemas.Topic(),
    errors=[NoSuchTopic],
)
def get_topic(id: str) -> Reply:
    """Read a topic."""
    return store.get_topic(id)


@topics.patch(
    "/topics/<nanoid:id>",
    access=OWNER_SESSION_REQUIRED,
    limits=[EDIT_LIMIT],
    body=schemas.TopicInput(partial=True),
    conditional=True,
    returns=schemas.Topic(),
    errors=[NoSuchTopic, TopicTaken],
)
def edit_topic(id: str, body: dict[str, str], condition: Condition) -> Reply:
    """Change the name or the color of a topic."""
    lock_as_owner()
    topic = store.lock_topic(id)
    condition.require_body(store.get_topic(id))
    if store.edit_topic(topic, body):
        log.record_act("edited", "topic", id, None, reason=body.get("name", topic.name))
    return store.get_topic(id)


def clear_topic(id: str, condition: Condition) -> None:
    """Take a topic from its posts, in several units of work."""
    condition.require_body(store.get_topic(id))
    has_more = True
    while has_more:
        with unit_of_work():
            has_more = store.clear_step(id)


@topics.delete(
    "/topics/<nanoid:id>",
    access=OWNER_SESSION_REQUIRED,
    conditional=True,
    prepare=clear_topic,
    status=204,
    errors=[NoSuchTopic],
)
def delete_topic(id: str, condition: Condition) -> Reply:
    """Delete a topic. The posts that had it stay."""
    lock_as_owner()
    topic = store.lock_topic(id)
    condition.require_body(store.get_topic(id))
    store.delete_topic(id)
    log.record_act("deleted", "topic", id, None, reason=topic.name)
    return None
