"""The export of all that a member has on the site, as a ZIP that is made while it is sent.

Rows are read in batches, so the export takes little memory and holds no transaction. What changes
meanwhile is in it as it was at some time of the export.
"""

from collections.abc import Generator, Iterator, Sequence
from datetime import datetime
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import orjson
import sqlalchemy as sa

from posting.accounts.models import Session, Token, User
from posting.avatars.models import Avatar
from posting.comments.models import Comment
from posting.db.transactions import Row, fetch_all, fetch_one
from posting.db.types import UtcDateTime, now, to_rfc3339
from posting.files.models import File, FileData
from posting.images.models import Image, ImageData
from posting.invitations.models import Invitation
from posting.mail.models import Mailbox
from posting.moderation.models import Report
from posting.notifications.models import Notification, Seen, Subscription
from posting.posts.models import Post
from posting.reactions.models import Reaction
from posting.topics.store import add_topics
from posting.web.streaming import Sink

BATCH = 100
# What only the service needs, what would let somebody in, and who has decided on a report.
HIDDEN = {
    *("password_hash", "token_hash", "secret_hash", "key", "version", "closed_by_id"),
    *("thread_id", "thread_at", "author_id", "owner_id", "user_id", "reporter_id"),
}
# The tables of a member by the names of their files, with the columns that say whose a row is.
TEXTS = {"posts": Post.author_id, "comments": Comment.author_id}
OTHERS = {
    "images": Image.owner_id,
    "files": File.owner_id,
    "notifications": Notification.user_id,
    "reports": Report.reporter_id,
    "followed-posts": Subscription.user_id,
    "read-posts": Seen.user_id,
    "reactions": Reaction.user_id,
    "invitations": Invitation.created_by_id,
    "sessions": Session.user_id,
    "tokens": Token.user_id,
    "mails": Mailbox.user_id,
}

Columns = dict[str, Any]


def export_account(user_id: str) -> Generator[bytes, None, None]:
    """Yield the parts of a ZIP with all that a member has on the site."""
    sink = Sink()
    with ZipFile(sink, "w") as archive:
        for name, items in _tables(user_id):
            with archive.open(_entry(f"{name}.json", ZIP_DEFLATED), "w") as file:
                before = b"["
                for item in items:
                    file.write(before + b"\n" + orjson.dumps(item))
                    before = b","
                    yield sink.take()
                file.write(b"]\n" if before == b"," else b"[]\n")
        for name, data in _pictures_and_files(user_id):
            archive.writestr(_entry(name, ZIP_STORED), data)
            yield sink.take()
    yield sink.take()


def _entry(name: str, compression: int) -> ZipInfo:
    entry = ZipInfo(name, now().timetuple()[:6])
    entry.compress_type = compression
    return entry


def _tables(user_id: str) -> Iterator[tuple[str, Iterator[Columns]]]:
    """Yield the name of each file with rows, and the rows."""
    profile = sa.select(*_columns(User)).where(User.id == user_id)
    yield "profile", map(_to_item, fetch_all(profile))
    for name, owner in TEXTS.items():
        yield name, _list_texts(owner, user_id)
    for name, owner in OTHERS.items():
        rows = sa.select(*_columns(owner.class_)).where(owner == user_id)
        yield name, map(_to_item, fetch_all(rows))


def _list_texts(owner: Any, user_id: str) -> Iterator[Columns]:
    """Yield the posts or the comments of a member, oldest first."""
    model = owner.class_
    place = sa.tuple_(model.created_at, model.id)
    statement = sa.select(*_columns(model)).where(owner == user_id).order_by(*place)
    if model is Post:
        statement = statement.where(Post.deleted_at.is_(None))
    rows: Sequence[Row] = fetch_all(statement.limit(BATCH))
    while rows:
        items = [*map(_to_item, rows)]
        if model is Post:
            add_topics(items)
        yield from items
        last = sa.literal(rows[-1].created_at, UtcDateTime()), sa.literal(rows[-1].id)
        rows = fetch_all(statement.where(place > sa.tuple_(*last)).limit(BATCH))


def _columns(model: Any) -> list[Any]:
    """Return the columns of a table that its member sees."""
    shown = (column for column in model.__table__.columns if column.name not in HIDDEN)
    return [column for column in shown if not isinstance(column.type, sa.LargeBinary)]


def _to_item(row: Row) -> Columns:
    return {
        name: to_rfc3339(value) if isinstance(value, datetime) else value
        for name, value in row._mapping.items()
    }


def _pictures_and_files(user_id: str) -> Iterator[tuple[str, bytes]]:
    """Yield the names and the bytes of the avatar, the images and the files of a member."""
    avatar = fetch_one(sa.select(Avatar.data).where(Avatar.user_id == user_id))
    if avatar:
        yield "avatar.webp", bytes(avatar.data)
    images = sa.select(Image.id, Image.media_type).where(Image.owner_id == user_id)
    for image in fetch_all(images):
        data = fetch_one(sa.select(ImageData.data).where(ImageData.image_id == image.id))
        if data:  # the image may have been deleted meanwhile
            yield f"images/{image.id}.{image.media_type.rpartition('/')[2]}", bytes(data.data)
    files = sa.select(File.id, File.name).where(File.owner_id == user_id)
    for file in fetch_all(files):
        data = fetch_one(sa.select(FileData.data).where(FileData.file_id == file.id))
        if data:
            yield f"files/{file.id}/{file.name}", bytes(data.data)
