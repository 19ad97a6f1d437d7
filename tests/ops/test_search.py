"""`flask search rebuild`."""

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.transactions import transaction
from posting.db.types import now
from posting.indexes import INDEXES
from posting.posts.models import Post
from tests.helpers.assertions import assert_consistent, assert_indexed


@pytest.mark.parametrize(
    "wrong",
    [
        {"comment_count": 7},
        {"image_count": 7},
        {"last_comment_at": None},
        {"last_comment_at": now()},
    ],
)
def test_what_a_post_says_about_its_comments_and_images_is_corrected(
    flask, app, alice, moderator, wrong
):
    posts = [alice.create_post(title) for title in ("One", "Two", "Three")]
    for post in posts[:2]:
        comment = alice.add_comment(post, "A comment")
        alice.add_comment(post, "A reply", parent_id=comment["id"])
        moderator.delete(f"/comments/{comment['id']}")  # which becomes a placeholder
    before = alice.get("/posts?expand=content").json
    with app.app_context(), transaction() as connection:
        connection.execute(sa.update(Post).values(wrong))
    code, output = flask("search", "rebuild")
    assert (code, output) == (0, "Indexed 3 posts, 2 comments and 2 users.\n")
    assert alice.get("/posts?expand=content").json == before
    with app.app_context(), db.engine.connect() as connection:
        assert_consistent(connection)


def test_all_indexes_are_filled_again(flask, app, alice, post):
    alice.add_comment(post, "A comment")
    with app.app_context(), transaction() as connection:
        for index in INDEXES:
            index.clear(connection)
    assert flask("search", "rebuild")[0] == 0
    with app.app_context(), db.engine.connect() as connection:
        assert_indexed(connection)
