"""Made-up users, posts, comments and images."""

import itertools
import random
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from io import BytesIO
from typing import Any

import PIL.Image
import sqlalchemy as sa
from PIL import ImageDraw

from posting.auth.passwords import hash_password
from posting.db.engine import Base, db
from posting.db.models import Comment, Image, ImageData, Post, User
from posting.db.types import new_id, now, truncate_to_milliseconds

PASSWORD = "a demo of posting"  # noqa: S105 - printed by the command that uses it
BATCH = 1000
MILLISECOND = timedelta(milliseconds=1)

Row = dict[str, Any]
Rows = list[Row]

FIRST_NAMES = (
    "Ada Alan Barbara Bjarne Carol Dennis Donald Edsger Frances Grace Guido Hedy Ivan Jean Joan "
    "John Karen Katherine Ken Leslie Linus Lynn Margaret Mary Niklaus Radia Shafi Sophie Tim Tony"
).split()
LAST_NAMES = (
    "Abbott Baker Castell Dijkhof Ekman Farrow Gallo Hartmann Ibsen Jansen Keller Lindqvist "
    "Moreau Novak Okafor Petrov Quint Rossi Sato Thorsen Urban Varga Weber Xu Yilmaz Zeman"
).split()
THINGS = (
    "the community garden,the old bridge,our bread oven,the repair café,the night bus,the choir,"
    "the chess club,the tool library,the swimming pond,the school roof,the market square,"
    "the bicycle path,the reading circle,the film evening,the allotments,the harbour"
).split(",")
TITLES = (
    "What should become of {}?|News about {}|Who can help with {}?|A thank-you for {}|"
    "Three ideas for {}|How I came to love {}|Minutes: {}|Photographs of {} wanted|"
    "Next Saturday: {}|A question about {}"
).split("|")
OPENINGS = (
    "Last week I walked past {} and stopped for a while.|Many of you have asked me about {}.|"
    "It is time that we talk about {} again.|I have been thinking about {} since the spring.|"
    "Some good news first: {} will stay open.|This is a short report on {}."
).split("|")
MIDDLES = (
    "The last time we met, twelve people came, and half of them brought a friend.|"
    "It needs a little money and a lot of patience.|The *council* has promised to answer by May.|"
    "My neighbour knows somebody who built one with their own hands.|"
    "We tried it for a month, and it went better than anybody thought.|"
    "There is a list in the library where you can put your name.|"
    "In winter it is harder, but not impossible.|I have put the figures together below.|"
    "Nobody has to be an expert: two free hours and a pair of gloves will do.|"
    "Those who were there last year know how good the soup was.|"
    "If it rains, we meet under the roof of the market hall.|"
    "What worries me is who will look after it when the summer is over."
).split("|")
CLOSINGS = (
    "What do you think?|Write to me or just come along.|All hands are welcome.|"
    "More about this next week.|Who is in?|Thank you all."
).split("|")

REMARKS = (
    "Count me in!|I was there, and it was better than it sounds.|Has anybody asked the neighbours?|"
    "What does it cost?|My sister would like to help too.|Can we do it on a *Sunday*?|"
    "Thank you for writing this down.|I am not sure that this is wise.|Where do I find the list?"
).split("|")
REPLIES = (
    "That is what I thought.|Not as far as I know.|Ask at the library.|On the contrary!|"
    "Me too.|Then we are two already.|See you there.|I shall bring the soup.|Why not?"
).split("|")
WIDTH, HEIGHT = 480, 320
SKIES = {"at noon": "skyblue", "at dusk": "lightsalmon", "in the fog": "lightgray"}


def add_users(count: int) -> list[tuple[str, str]]:
    """Add `count` users who share one password; return their ids and names."""
    taken = set(db.session.scalars(sa.select(sa.func.lower(User.username))))
    password_hash = hash_password(PASSWORD)
    joined = now() - timedelta(days=730)
    rows: Rows = []
    numbers = itertools.count(1)
    while len(rows) < count:
        first, last = random.choice(FIRST_NAMES), random.choice(LAST_NAMES)
        username = f"{first}-{last}".lower()
        if username in taken:
            username += f"-{next(numbers)}"
        if username in taken:
            continue
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
    for start in range(0, count, BATCH):
        db.session.execute(sa.insert(User), rows[start : start + BATCH])
    db.session.commit()
    return [(row["id"], row["username"]) for row in rows]


def add_posts(posts: int, comments: int, images: int, author_ids: list[str]) -> Iterator[int]:
    """Add posts spread over the last two years, with comments and images shared out among them.

    Yields how many posts each batch has.
    """
    start, step = now() - timedelta(days=729), timedelta(days=729) / posts
    comments_of, images_of = _by_chance(comments, posts), _evenly(images, posts)
    batch = _empty_batch()
    for number in range(posts):
        moment = truncate_to_milliseconds(start + step * number)
        post = _post(random.choice(author_ids), moment)
        said = list(_comments(post, next(comments_of), author_ids))
        batch[Post].append(post | {"comment_count": len(said)})
        batch[Comment] += said
        for image, data in _images(post, next(images_of)):
            batch[Image].append(image)
            batch[ImageData].append({"image_id": image["id"], "data": data})
        if number == posts - 1 or sum(map(len, batch.values())) >= BATCH:
            yield _write(batch)
            batch = _empty_batch()


def _empty_batch() -> dict[type[Base], Rows]:
    """Return a place for the rows of each table, in an order in which they can be written."""
    return {Post: [], Comment: [], Image: [], ImageData: []}


def _write(batch: dict[type[Base], Rows]) -> int:
    for model, rows in batch.items():
        if rows:
            db.session.execute(sa.insert(model), rows)
    db.session.commit()
    return len(batch[Post])


def _by_chance(total: int, among: int) -> Iterator[int]:
    """Share a total out so that most get little and a few get much."""
    for left in range(among, 1, -1):
        share = min(total, round(random.expovariate(left / total))) if total else 0
        yield share
        total -= share
    yield total


def _evenly(total: int, among: int) -> Iterator[int]:
    return ((number + 1) * total // among - number * total // among for number in range(among))


def _post(author_id: str, moment: datetime) -> Row:
    thing = random.choice(THINGS)
    paragraphs = [" ".join(random.sample(MIDDLES, random.randint(2, 5))) for _ in range(4)]
    content = "\n\n".join(
        [random.choice(OPENINGS).format(thing), *paragraphs, random.choice(CLOSINGS)]
    )
    return {
        "id": new_id(),
        "author_id": author_id,
        "title": random.choice(TITLES).format(thing),
        "content": content,
        "version": 1,
        "created_at": moment,
        "updated_at": moment,
    }


def _comments(post: Row, count: int, author_ids: list[str]) -> Iterator[Row]:
    """Yield comments and replies that follow one another within hours, but not in the future."""
    recent: deque[str] = deque(maxlen=5)
    moment = post["created_at"]
    longest = min(timedelta(hours=4), (now() - moment) / (count + 1))
    for _ in range(count):
        moment = truncate_to_milliseconds(moment + max(MILLISECOND, longest * random.random()))
        parent_id = random.choice([None, *recent])
        row = {
            "id": new_id(),
            "post_id": post["id"],
            "parent_id": parent_id,
            "author_id": random.choice(author_ids),
            "content": random.choice(REPLIES if parent_id else REMARKS),
            "version": 1,
            "created_at": moment,
            "updated_at": moment,
        }
        recent.append(row["id"])
        yield row


def _images(post: Row, count: int) -> Iterator[tuple[Row, bytes]]:
    for number in range(count):
        weather = random.choice(list(SKIES))
        data = _landscape(SKIES[weather])
        image = {
            "id": new_id(),
            "post_id": post["id"],
            "media_type": "image/png",
            "width": WIDTH,
            "height": HEIGHT,
            "size": len(data),
            "alt": f"Hills {weather}",
            "created_at": post["created_at"] + number * MILLISECOND,
        }
        yield image, data


def _landscape(sky: str) -> bytes:
    """Draw hills before a sky, as a PNG."""
    picture = PIL.Image.new("RGB", (WIDTH, HEIGHT), sky)
    draw = ImageDraw.Draw(picture)
    draw.circle((random.randrange(WIDTH), HEIGHT // 4), HEIGHT // 10, "lightyellow")
    for green in ("darkseagreen", "seagreen", "darkgreen"):
        left, right = (random.randrange(HEIGHT // 3, HEIGHT) for _ in range(2))
        draw.polygon([(0, left), (WIDTH, right), (WIDTH, HEIGHT), (0, HEIGHT)], green)
    out = BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()
