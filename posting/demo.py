"""Made-up users and posts."""

import itertools
import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from posting.database import db, new_id, now
from posting.models import Post, User
from posting.sessions import hash_password

PASSWORD = "a demo of posting"  # noqa: S105 - printed by the command that uses it
BATCH = 1000

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


def add_users(count: int) -> list[tuple[str, str]]:
    """Add `count` users who share one password; return their ids and names."""
    taken = set(db.session.scalars(sa.select(sa.func.lower(User.username))))
    password_hash = hash_password(PASSWORD)
    joined = now() - timedelta(days=730)
    rows: list[dict[str, Any]] = []
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
    for batch in _batches(iter(rows)):
        db.session.execute(sa.insert(User), batch)
    db.session.commit()
    return [(row["id"], row["username"]) for row in rows]


def add_posts(count: int, author_ids: list[str]) -> Iterator[int]:
    """Add `count` posts spread over the last two years; yield how many, batch by batch."""
    start, step = now() - timedelta(days=729), timedelta(days=729) / count
    rows = (_post(random.choice(author_ids), start + step * number) for number in range(count))
    for batch in _batches(rows):
        db.session.execute(sa.insert(Post), batch)
        db.session.commit()
        yield len(batch)


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while batch := list(itertools.islice(rows, BATCH)):
        yield batch


def _post(author_id: str, moment: Any) -> dict[str, Any]:
    thing = random.choice(THINGS)
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
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
