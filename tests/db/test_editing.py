"""Edits change `updated_at` and `version`; other changes of a row do not."""

from time import sleep

import pytest
import sqlalchemy as sa

from posting.comments.models import Comment
from posting.db.base import db
from posting.db.editing import edit
from posting.db.transactions import execute, fetch_one, unit_of_work
from posting.posts.models import Post


@pytest.fixture
def comment(alice, post):
    return alice.add_comment(post, "Nice.")


def state(app, model, id):
    """Return the version of a row and the time of its last edit."""
    with app.app_context():
        return db.session.execute(
            sa.select(model.version, model.updated_at).where(model.id == id)
        ).one()


@pytest.mark.parametrize("model", [Post, Comment])
def test_an_edit_changes_both(app, alice, post, comment, model):
    row, kind = (post, "posts") if model is Post else (comment, "comments")
    version, time = state(app, model, row["id"])
    sleep(0.002)  # timestamps have milliseconds
    for _ in range(2):  # the second changes nothing
        edited = alice.patch(f"/{kind}/{row['id']}", json={"content": "Another text."})
        assert edited.status_code == 200
    edited_version, edited_time = state(app, model, row["id"])
    assert (edited_version, edited_time > time) == (version + 1, True)


def test_a_placeholder_counts_as_edited(app, alice, post, comment):
    version, time = state(app, Comment, comment["id"])
    alice.add_comment(post, "Thanks.", parent_id=comment["id"])
    sleep(0.002)
    assert alice.delete(f"/comments/{comment['id']}").status_code == 204
    deleted_version, deleted_time = state(app, Comment, comment["id"])
    assert (deleted_version, deleted_time > time) == (version + 1, True)


def test_comments_do_not_edit_their_post(app, alice, post):
    before = state(app, Post, post["id"])
    sleep(0.002)
    comments = [alice.add_comment(post, "Nice.") for _ in range(2)]
    alice.add_image(post)
    assert alice.delete(f"/comments/{comments[1]['id']}").status_code == 204
    assert alice.get(f"/posts/{post['id']}").json["comment_count"] == 1
    assert state(app, Post, post["id"]) == before


def test_the_end_of_an_account_does_not_edit_what_it_leaves(app, alice, post, comment):
    before = state(app, Post, post["id"]), state(app, Comment, comment["id"])
    sleep(0.002)
    assert alice.delete("/users/me?content=keep").status_code == 204
    assert (state(app, Post, post["id"]), state(app, Comment, comment["id"])) == before


def test_an_edit_of_another_version_is_refused(app, post):
    with app.app_context(), unit_of_work():
        read = fetch_one(sa.select(Post.__table__).where(Post.id == post["id"]))
        execute(sa.update(Post).values(version=Post.version + 1))
        with pytest.raises(RuntimeError, match="without a lock"):
            edit(Post, read, {"title": "On looms"})
