"""Generate users, what they have written and react to, topics, an invitation and reports."""

import random
from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO
from typing import Any

import PIL.Image
import sqlalchemy as sa
from PIL import ImageDraw

from posting.accounts.models import User
from posting.accounts.passwords import hash_password
from posting.accounts.store import insert_users
from posting.comments import store as comment_store
from posting.comments.models import Comment
from posting.db.base import Base
from posting.db.transactions import execute, fetch_all, unit_of_work
from posting.db.types import new_id, now, truncate_to_milliseconds
from posting.files.models import File, FileData
from posting.images.codec import LIMITS
from posting.images.codec.child import make_renditions
from posting.images.models import Image, ImageData, ImageSize, Thumbnail
from posting.invitations.models import Invitation, InvitationUse
from posting.invitations.store import create_invitation
from posting.moderation.models import Report
from posting.posts import store as post_store
from posting.posts.models import Post
from posting.reactions.models import NAMES, NO_REACTIONS, Reaction
from posting.topics.models import PostTopic
from posting.topics.store import insert_topic, list_topics

PASSWORD = "a demo of posting"  # noqa: S105 - public: `flask demo` prints it
BATCH_ROWS = 1000
POSTS_PER_FILE = 10
ATTACHED = (Image, ImageData, Thumbnail, ImageSize, File, FileData)
SMALL = (PostTopic, Reaction)

Row = dict[str, Any]

FIRST_NAMES = (
    "Ada Alan Barbara Dennis Edsger Frances Grace Guido Hedy Linus Radia Sophie Tim".split()
)
LAST_NAMES = (
    "Abbott Baker Castell Ekman Gallo Ibsen Keller Moreau Novak Okafor Rossi Sato Xu".split()
)
THINGS = (
    "the community garden,our bread oven,the repair café,the night bus,the choir,the chess club,"
    "the tool library,the swimming pond,the market square"
).split(",")
TITLES = (
    "What should become of {}?|News about {}|Who can help with {}?|A thank-you for {}|"
    "Three ideas for {}|How I came to love {}|Photographs of {} wanted|A question about {}"
).split("|")
OPENINGS = "Many of you have asked me about {}.|It is time that we talk about {} again.".split("|")
MIDDLES = (
    "The last time we met, twelve people came, and half of them brought a friend.|"
    "It needs a little money and a lot of patience.|The *council* has promised to answer by May.|"
    "We tried it for a month, and it went better than anybody thought.|"
    "You need not be an expert: two free hours and a pair of gloves will do.|"
    "If it rains, we meet under the roof of the market hall.|"
    "What worries me is who will look after it when the summer is over."
).split("|")
CLOSINGS = "What do you think?|Write to me or just come along.|All hands are welcome.".split("|")
COMMENTS = "Count me in!|What does it cost?|Can we do it on a *Sunday*?|Me too.|Why not?".split("|")
REASONS = "This is advertising.|Somebody has posted this already.|This is about me.".split("|")
TOPICS = {"Garden": "green", "Market": "orange", "Questions": "blue", "Thanks": "pink"}
WIDTH, HEIGHT = 480, 320
SKIES = ("skyblue", "lightsalmon", "lightgray")


def add_users(count: int) -> list[Row]:
    """Add `count` users with the same password, and return their rows."""
    taken = {row[0] for row in fetch_all(sa.select(sa.func.lower(User.username)))}
    password_hash, joined = hash_password(PASSWORD), now() - timedelta(days=730)
    rows = []
    for _ in range(count):
        first, last = random.choice(FIRST_NAMES), random.choice(LAST_NAMES)
        username = name = f"{first}-{last}".lower()
        while username in taken:
            username = f"{name}-{random.randrange(1_000_000)}"
        taken.add(username)
        rows.append(
            {
                "id": new_id(),
                "username": username,
                "display_name": f"{first} {last}",
                "bio": f"I care about {random.choice(THINGS)}.",
                "password_hash": password_hash,
                "created_at": joined,
            }
        )
    with unit_of_work():
        insert_users(rows)
    return rows


@unit_of_work()
def add_newcomers(user_ids: list[str]) -> None:
    """Let the first user invite the second one and a third person, and somebody else apply."""
    invitation, _ = create_invitation(user_ids[0], uses=2, note="For the neighbours")
    for user_id in user_ids[1:2]:
        own = Invitation.id == invitation["id"]
        execute(sa.update(Invitation).where(own).values(uses_left=1))
        use = {"invitation_id": invitation["id"], "invited_by_id": user_ids[0]}
        execute(sa.insert(InvitationUse), **use, user_id=user_id)
    applicant = {
        "id": new_id(),
        "username": f"newcomer-{random.randrange(1_000_000)}",
        "display_name": None,
        "password_hash": hash_password(PASSWORD),
        "created_at": now(),
        "pending_since": now(),
        "application": f"I have moved here, and care about {random.choice(THINGS)}.",
    }
    insert_users([applicant])


@unit_of_work()
def add_topics() -> None:
    """Add topics if there are none."""
    if not list_topics():
        for name, color in TOPICS.items():
            insert_topic({"name": name, "color": color})


def add_posts(posts: int, comments: int, images: int, author_ids: list[str]) -> Iterator[int]:
    """Add posts from the last two years, with comments and images distributed among them.

    Yield the number of posts in each batch once it is committed.
    """
    start, step = now() - timedelta(days=729), timedelta(days=729) / posts
    topic_ids = [topic["id"] for topic in list_topics()]
    models = (Post, Comment, *ATTACHED, *SMALL)
    batch: dict[type[Base], list[Row]] = {model: [] for model in models}
    for number in range(posts):
        # Most posts get few comments, some get many, and the last one gets the rest.
        share = round(random.expovariate(1) * comments / (posts - number))
        comment_count = min(share, comments) if number < posts - 1 else comments
        comments -= comment_count
        # Images are spread evenly, as a post may have only a few.
        image_count = (number + 1) * images // posts - number * images // posts
        thing = random.choice(THINGS)
        paragraphs = [" ".join(random.sample(MIDDLES, random.randint(2, 5))) for _ in range(4)]
        opening, closing = random.choice(OPENINGS).format(thing), random.choice(CLOSINGS)
        post: Row = {
            "id": new_id(),
            "author_id": random.choice(author_ids),
            "title": random.choice(TITLES).format(thing),
            "content": "\n\n".join([opening, *paragraphs, closing]),
            "comment_count": comment_count,
            "image_count": 0,
            "file_count": 0,
            **NO_REACTIONS,
            "last_comment_at": None,
            "created_at": truncate_to_milliseconds(start + step * number),
        }
        batch[Post].append(post)
        own_comments = [*_comments(post, author_ids)]
        batch[Comment] += own_comments
        batch[PostTopic] += _topics(post, topic_ids)
        for text in (post, *own_comments):
            batch[Reaction] += _reactions(text, author_ids)
        for _ in range(image_count):
            # Every fifth image is one of a comment.
            bare = [comment for comment in own_comments if not comment["image_count"]]
            text = random.choice(bare) if bare and random.random() < 0.2 else post
            text["image_count"] += 1
            for model, rows in _image(text).items():
                batch[model] += rows
        if number % POSTS_PER_FILE == POSTS_PER_FILE - 1:
            for model, rows in _file(post).items():
                batch[model] += rows
        if number == posts - 1 or _size(batch) >= BATCH_ROWS:
            with unit_of_work():
                post_store.insert_posts(batch[Post])
                if batch[Comment]:
                    comment_store.insert_comments(batch[Comment])
                for model in (*ATTACHED, *SMALL):
                    if batch[model]:
                        execute(sa.insert(model), batch[model])
            yield len(batch[Post])
            for rows in batch.values():
                rows.clear()


@unit_of_work()
def add_reports(author_ids: list[str]) -> None:
    """Pin the newest post of the users if none is pinned, and report three others."""
    own = sa.select(Post).where(Post.author_id.in_(author_ids[:BATCH_ROWS]))
    columns = own.with_only_columns(Post.id, Post.author_id, Post.title, Post.updated_at)
    posts = fetch_all(columns.order_by(Post.created_at.desc()).limit(1 + len(REASONS)))
    if posts and not post_store.list_pinned_posts():
        post_store.pin_post(post_store.get_post_for_update(posts[0].id))
    for post, reason in zip(posts[1:], REASONS, strict=False):
        others = [id for id in author_ids if id != post.author_id] or author_ids
        values = {"reporter_id": random.choice(others), "reason": reason}
        target = {"target_kind": "post", "target_id": post.id, "post_id": post.id}
        text = {"excerpt": post.title, "target_updated_at": post.updated_at}
        execute(sa.insert(Report), **values, **target, **text, author_id=post.author_id)


def _size(batch: dict[type[Base], list[Row]]) -> int:
    """Return how many rows of a batch count."""
    return sum(len(rows) for model, rows in batch.items() if model not in SMALL)


def _comments(post: Row, author_ids: list[str]) -> Iterator[Row]:
    """Yield comments and replies, at most four hours apart and none in the future."""
    recent: deque[Row] = deque(maxlen=5)
    created_at = post["created_at"]
    max_gap = min(timedelta(hours=4), (now() - created_at) / (post["comment_count"] + 1))
    for _ in range(post["comment_count"]):
        gap = max(timedelta(milliseconds=1), max_gap * random.random())
        created_at = truncate_to_milliseconds(created_at + gap)
        id, parent = new_id(), random.choice([None, *recent])
        comment = {
            "id": id,
            "post_id": post["id"],
            "parent_id": parent and parent["id"],
            "thread_id": parent["thread_id"] if parent else id,
            "thread_at": parent["thread_at"] if parent else created_at,
            "author_id": random.choice(author_ids),
            "content": random.choice(COMMENTS),
            "image_count": 0,
            **NO_REACTIONS,
            "created_at": created_at,
        }
        recent.append(comment)
        post["last_comment_at"] = created_at
        yield comment


def _topics(post: Row, topic_ids: list[str]) -> list[Row]:
    """Return the rows of up to two topics of a post."""
    chosen = random.sample(topic_ids, min(len(topic_ids), random.randint(0, 2)))
    post["has_topics"] = bool(chosen)
    times = {"created_at": post["created_at"]}
    times["last_activity_at"] = post["last_comment_at"] or post["created_at"]
    return [{"post_id": post["id"], "topic_id": id, **times} for id in chosen]


def _reactions(text: Row, author_ids: list[str]) -> list[Row]:
    """Return the rows of reactions to a post or comment, most of which have none."""
    number = random.randint(1, 5) if random.random() < 0.2 else 0
    rows = []
    for user_id in random.sample(author_ids, min(len(author_ids), number)):
        name = random.choice(NAMES)
        text[name] += 1
        of = {"post_id": text.get("post_id", text["id"]), "text_id": text["id"]}
        of["comment_id"] = text["id"] if "post_id" in text else None
        of["created_at"] = text["created_at"]
        rows.append({"user_id": user_id, "name": name, **of})
    return rows


def _image(text: Row) -> dict[type[Base], list[Row]]:
    """Return the rows of an image of a post or comment, with its bytes and small copies.

    It shows hills in front of a sky.
    """
    picture = PIL.Image.new("RGB", (WIDTH, HEIGHT), random.choice(SKIES))
    draw = ImageDraw.Draw(picture)
    for green in ("darkseagreen", "seagreen", "darkgreen"):
        left, right = (random.randrange(HEIGHT // 3, HEIGHT) for _ in range(2))
        draw.polygon([(0, left), (WIDTH, right), (WIDTH, HEIGHT), (0, HEIGHT)], green)
    out = BytesIO()
    picture.save(out, "PNG")
    id = new_id()
    (_, thumbnail), *sizes = (
        (side, {"image_id": id, "width": width, "height": height, "data": data})
        for side, (width, height), data in make_renditions(picture, LIMITS, out.tell())
    )
    image = {
        "id": id,
        "post_id": text.get("post_id", text["id"]),
        "comment_id": text["id"] if "post_id" in text else None,
        "owner_id": text["author_id"],
        "media_type": "image/png",
        "width": WIDTH,
        "height": HEIGHT,
        "size": len(out.getvalue()),
        "alt": "Hills",
        "created_at": text["created_at"],
        "resized_at": now(),
    }
    return {
        Image: [image],
        ImageData: [{"image_id": id, "data": out.getvalue()}],
        Thumbnail: [thumbnail],
        ImageSize: [{"side": side, **size} for side, size in sizes],
    }


def _file(post: Row) -> dict[type[Base], list[Row]]:
    """Return the rows of a file of a post: a table of who comes."""
    names = random.sample(FIRST_NAMES, 4)
    lines = [f"{name} {random.choice(LAST_NAMES)},{random.randint(1, 4)}" for name in names]
    data = "\r\n".join(["name,people", *lines, ""]).encode()
    post["file_count"] += 1
    file = {
        "id": new_id(),
        "post_id": post["id"],
        "owner_id": post["author_id"],
        "name": "who-comes.csv",
        "size": len(data),
        "created_at": post["created_at"],
    }
    return {File: [file], FileData: [{"file_id": file["id"], "data": data}]}
