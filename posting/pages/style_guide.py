"""Examples for the style guide, which shows developers every element of the pages."""

from typing import Any

from posting.reactions.models import EMOJI
from posting.topics.models import COLORS
from posting.web.pagination import Page

TIME = "2026-03-01T09:30:00.000Z"
TOPICS = [
    {"id": color, "name": color.capitalize(), "color": color, "position": number}
    for number, color in enumerate(COLORS)
]


def _person(id: str, username: str, display_name: str) -> dict[str, Any]:
    return {"id": id, "username": username, "display_name": display_name, "avatar_url": None}


ADA, GRACE = _person("a", "ada", "Ada Lovelace"), _person("b", "grace", "Grace Hopper")
POST = {
    "id": "post",
    "author": ADA,
    "title": "What should become of our bread oven?",
    "content": "The oven behind the market hall is thirty years old. Twelve of us met on Sunday.",
    "created_at": TIME,
    "updated_at": TIME,
    "last_activity_at": TIME,
    "comment_count": 24,
    "reactions": dict.fromkeys(EMOJI, 0) | {"heart": 3},
    "topics": TOPICS[:2],
    "pinned": True,
    "thumbnail": None,
    "photo": None,
}
POSTS = Page([POST, {**POST, "author": GRACE, "pinned": False, "comment_count": 0}], None)
COMMENT = {
    "id": "comment",
    "author": GRACE,
    "content": "I have a door that fits. It needs *paint*, and a Sunday.",
    "created_at": TIME,
    "updated_at": TIME,
    "reactions": dict.fromkeys(EMOJI, 0) | {"heart": 1, "thanks": 12},
    "images": [],
    "files": [],
}
TEXT = """The oven is *thirty years old*, and **warm**.

- the bricks are sound
- the door is not

> We tried it for a month.

`code`, and a [link](https://example.org).

| what | how many |
|---|--:|
| bricks | 400 |
"""
EXAMPLES: dict[str, Any] = {
    "posts": POSTS,
    "topics": TOPICS,
    "example": COMMENT,
    "example_text": TEXT,
}
