"""Timestamps, and rows that the database refuses."""

from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from posting.accounts.models import Session, User
from posting.comments.models import Comment
from posting.db.base import db
from posting.db.errors import violated_constraint
from posting.db.types import UtcDateTime, now
from posting.images.models import Image, ImageData, ImageSize, Thumbnail
from posting.invitations.models import Invitation, InvitationUse
from posting.notifications.models import Notification, Subscription
from posting.posts.models import Post
from tests.conftest import POSTGRES

NOTIFICATION = {"user_id": "u" * 21, "created_at": now(), "id": "n" * 21, "kind": "x"}
INVITATION = {"secret_hash": "x", "uses": 1, "uses_left": 1, "expires_at": now()}


def test_timestamps_are_read_as_they_were_written(app):
    sample = datetime(2026, 11, 21, 9, 30, 0, 125000, UTC)
    with app.app_context():
        if POSTGRES:  # whatever the zone of the server is
            assert db.session.scalar(sa.text("SHOW timezone")) == "UTC"
        found = db.session.scalar(sa.select(sa.literal(sample, UtcDateTime())))
        assert found == sample
        assert found.tzinfo is UTC
    assert now().microsecond % 1000 == 0


@pytest.mark.parametrize(
    "row",
    [
        User(username="ab", password_hash="x"),
        User(username="x" * 33, password_hash="x"),
        User(username="abc", password_hash="x", bio="x" * 501),
        User(username="abc", password_hash="x", display_name="x" * 65),
        User(username="abc", password_hash="x", role="king"),
        User(username="abc", password_hash="x", application=""),
        User(username="abc", password_hash="x", application="x" * 1001),
        Post(title="", content="x"),
        Post(title="x" * 201, content="x"),
        Post(title="x", content=""),
        Post(title="x", content="x" * 100_001),
        Post(title="x", content="x", comment_count=-1),
        Post(title="x", content="x", author_id="a" * 21),
        Session(user_id="a" * 21, token_hash="x", user_agent=""),
        Invitation(**INVITATION | {"note": "x" * 101}),
        Invitation(**INVITATION | {"role": "king"}),
        Invitation(**INVITATION | {"uses": 101}),
        Invitation(**INVITATION | {"uses": 0, "uses_left": 0}),
        Invitation(**INVITATION | {"uses_left": 2}),
        Invitation(**INVITATION | {"uses_left": -1}),
        Invitation(**INVITATION | {"created_by_id": "a" * 21}),
        InvitationUse(user_id="a" * 21, invitation_id="x"),
        Comment(post_id="p" * 21, content=""),
        Comment(post_id="p" * 21, content="x" * 10_001),
        Comment(post_id="a" * 21, content="x"),
        Comment(post_id="p" * 21, content="x", parent_id="a" * 21),
        Comment(post_id="p" * 21, content="x", author_id="a" * 21),
        Image(post_id="a" * 21, media_type="image/png", width=1, height=1, size=1),
        Image(post_id="p" * 21, media_type="image/svg+xml", width=1, height=1, size=1),
        Image(post_id="p" * 21, media_type="image/png", width=0, height=1, size=1),
        Image(post_id="p" * 21, media_type="image/png", width=1, height=1, size=1, alt="x" * 501),
        ImageData(image_id="a" * 21, data=b"x"),
        Thumbnail(image_id="a" * 21, width=1, height=1, data=b"x"),
        Thumbnail(image_id="i" * 21, width=0, height=1, data=b"x"),
        Thumbnail(image_id="i" * 21, width=1, height=321, data=b"x"),
        Thumbnail(image_id="i" * 21, width=1, height=1, data=b""),
        Thumbnail(image_id="i" * 21, width=1, height=1, data=b"x" * 20_001),
        ImageSize(image_id="a" * 21, side=640, width=1, height=1, data=b"x"),
        ImageSize(image_id="i" * 21, side=641, width=1, height=1, data=b"x"),
        ImageSize(image_id="i" * 21, side=640, width=0, height=1, data=b"x"),
        ImageSize(image_id="i" * 21, side=640, width=1, height=641, data=b"x"),
        ImageSize(image_id="i" * 21, side=640, width=1, height=1, data=b""),
        ImageSize(image_id="i" * 21, side=640, width=1, height=1, data=b"x" * 800_001),
        Notification(**NOTIFICATION | {"kind": ""}),
        Notification(**NOTIFICATION | {"kind": "x" * 33}),
        Notification(**NOTIFICATION | {"reason": "x" * 501}),
        Notification(**NOTIFICATION | {"excerpt": "x" * 301}),
        Notification(**NOTIFICATION | {"post_id": "a" * 21}),
        Notification(**NOTIFICATION | {"comment_id": "a" * 21}),
        Notification(**NOTIFICATION | {"post_id": "p" * 21, "comment_id": "c" * 21}),
        Subscription(post_id="p" * 21, user_id="a" * 21, level="all"),
        Subscription(post_id="a" * 21, user_id="u" * 21, level="all"),
        Subscription(post_id="p" * 21, user_id="u" * 21, level="some"),
    ],
    ids=range(53),
)
def test_the_database_refuses_rows_that_violate_a_constraint(app, row):
    with app.app_context():
        db.session.add(Post(id="p" * 21, title="x", content="x"))
        db.session.flush()
        image = {"media_type": "image/png", "width": 1, "height": 1, "size": 1}
        db.session.add(User(id="u" * 21, username="abcd", password_hash="x"))
        db.session.add(Comment(id="c" * 21, post_id="p" * 21, content="x"))
        db.session.add(Image(id="i" * 21, post_id="p" * 21, **image))
        db.session.commit()
        db.session.merge(row)
        with pytest.raises((sa.exc.IntegrityError, sa.exc.DataError)):
            db.session.flush()


def test_a_violated_unique_constraint_is_named(app, alice):
    with app.app_context():
        db.session.add(User(username="ALICE", password_hash="x"))
        with pytest.raises(sa.exc.IntegrityError) as error:
            db.session.flush()
        assert violated_constraint(error.value) == "uq_users_username"
        db.session.rollback()
        db.session.add(Post(title="x", content="x", author_id="a" * 21))
        with pytest.raises(sa.exc.IntegrityError) as error:
            db.session.flush()
        assert violated_constraint(error.value) == ""
