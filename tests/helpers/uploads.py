"""Uploads of images to a post."""

from io import BytesIO

import sqlalchemy as sa

from posting.db.base import db
from posting.images.models import Image, ImageData, Thumbnail
from tests.helpers import pictures


def list_path(post):
    return f"/posts/{post['id']}/images"


def form(data=None, **fields):
    return {"file": (BytesIO(pictures.png() if data is None else data), "a.png")} | fields


def row_counts(app):
    """Return the numbers of images, of their data and of their thumbnails."""
    with app.app_context():
        count = sa.select(sa.func.count())
        tables = Image, ImageData, Thumbnail
        return [db.session.scalar(count.select_from(table)) for table in tables]
