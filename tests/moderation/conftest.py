"""Fixtures for the tests of moderation."""

import pytest

from posting.accounts.models import User
from posting.db.base import db


@pytest.fixture
def other_moderator(posting_sign_in, app):
    client = posting_sign_in("olga")
    with app.app_context():
        db.session.get(User, client.user["id"]).role = "moderator"
        db.session.commit()
    return client


@pytest.fixture
def comment(alice, post):
    return alice.add_comment(post, "Buy *cloth*!")
