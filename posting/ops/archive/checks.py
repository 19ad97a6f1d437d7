"""The rules of the API, for rows of an archive that no export of this service has written.

The author of an archive that is made by hand, or from another forum, gets the same errors as a
client: the schemas of requests check the texts, and images are treated like uploads.
"""

from collections.abc import Callable, Mapping
from typing import NoReturn

import click
import sqlalchemy as sa
from flask import current_app
from marshmallow import Schema, ValidationError, fields

from posting.accounts import passwords, tokens
from posting.accounts.schemas import Profile, RemovalQuery, SignUp, TokenInput
from posting.comments.schemas import IMAGES_PER_COMMENT, CommentChange
from posting.config import parse_scrypt_parameters
from posting.db.types import UtcDateTime, now
from posting.files.formats import FileError, check_file, clean_name
from posting.files.models import File
from posting.images import codec
from posting.images.models import Image
from posting.images.schemas import ImageChange
from posting.images.store import size_rows
from posting.invitations import models as invitations
from posting.invitations.schemas import InvitationInput
from posting.moderation.schemas import ReportDecision, ReportInput
from posting.moderation.views.acts import MAX_PINNED
from posting.ops.archive.lines import LineReader, Row
from posting.posts.models import Post
from posting.posts.schemas import FILES_PER_TEXT, IMAGES_PER_POST, PostInput
from posting.site.schemas import SiteInput
from posting.topics.models import MAX_TOPICS, TOPICS_PER_POST, PostTopic, Topic
from posting.topics.schemas import TopicInput
from posting.web.schemas import Input


def _rules(schema: type[Input], *without: str, **others: fields.Field[object]) -> Schema:
    """Return a schema of the fields of a request `without` some, and of other fields."""
    return schema.from_dict(others)(exclude=without, partial=True)


_REASON = RemovalQuery().fields["reason"]
# The columns of each table that people write. A column that is null is not checked.
TEXTS = {
    "users": _rules(
        Profile, "password", application=SignUp().fields["application"], suspension_reason=_REASON
    ),
    "posts": _rules(PostInput, "images", "files", "topics"),
    "comments": _rules(CommentChange, "images", "files"),
    "images": _rules(ImageChange),
    "topics": _rules(TopicInput),
    "invitations": _rules(InvitationInput, "expires_at"),
    "tokens": _rules(TokenInput, "expires_at"),
    "site": _rules(SiteInput),
    "reports": _rules(ReportInput, note=ReportDecision().fields["note"]),
    "acts": _rules(RemovalQuery),
    "notifications": _rules(RemovalQuery),
}
ENDS = {"ends_at", "expires_at", "suspended_until"}  # times that may be in the future
LIFETIMES = {"invitations": invitations.MAX_LIFETIME, "tokens": tokens.MAX_LIFETIME}
# The least value of columns that grow by one. The largest leaves room below 32 bits.
LEAST, LARGEST = {"version": 1, "hits": 0}, 1_000_000_000
LATER = ("updated_at", "edited_at", "last_comment_at", "last_seen_at")  # than `created_at`
TOO_MANY = {  # what a limit counts, and the first id that exceeds it
    f"post {{}} has more than {IMAGES_PER_POST} images": (
        sa.select(Image.post_id)
        .where(Image.comment_id.is_(None), Image.post_id.is_not(None))
        .group_by(Image.post_id)
        .having(sa.func.count() > IMAGES_PER_POST)
    ),
    f"comment {{}} has more than {IMAGES_PER_COMMENT} images": (
        sa.select(Image.comment_id)
        .where(Image.comment_id.is_not(None))
        .group_by(Image.comment_id)
        .having(sa.func.count() > IMAGES_PER_COMMENT)
    ),
    f"post {{}} has more than {FILES_PER_TEXT} files": (
        sa.select(File.post_id)
        .where(File.comment_id.is_(None), File.post_id.is_not(None))
        .group_by(File.post_id)
        .having(sa.func.count() > FILES_PER_TEXT)
    ),
    f"comment {{}} has more than {FILES_PER_TEXT} files": (
        sa.select(File.comment_id)
        .where(File.comment_id.is_not(None))
        .group_by(File.comment_id)
        .having(sa.func.count() > FILES_PER_TEXT)
    ),
    f"post {{}} has more than {TOPICS_PER_POST} topics": (
        sa.select(PostTopic.post_id)
        .group_by(PostTopic.post_id)
        .having(sa.func.count() > TOPICS_PER_POST)
    ),
    f"there are {MAX_TOPICS} topics beside {{}}": (
        sa.select(Topic.id).order_by(Topic.created_at, Topic.id).offset(MAX_TOPICS)
    ),
    "topic {} has the name of another one": (
        sa.select(sa.func.max(Topic.id))
        .group_by(sa.func.lower(Topic.name))
        .having(sa.func.count() > 1)
    ),
    f"post {{}} is pinned, and {MAX_PINNED} later ones are": (
        sa.select(Post.id)
        .where(Post.pinned_at.is_not(None))
        .order_by(Post.pinned_at.desc(), Post.id)
        .offset(MAX_PINNED)
    ),
}


class Checks:
    """The checks of an import. They add the problems of a row to those of `lines`.

    An image passes as it is if an export has written both of its lines, in `images` and in
    `image_data`. Any other image is encoded again, and gets a new thumbnail and new sizes.
    """

    def __init__(
        self, connection: sa.Connection, tables: Mapping[str, sa.Table], lines: LineReader
    ) -> None:
        self.connection, self.tables, self.lines = connection, tables, lines
        self.time = now()
        self._has_others = False  # rows that no export has written
        self._distrusted: set[str] = set()  # images and files whose bytes must be looked at
        self._encoded: set[str] = set()  # images whose bytes were encoded again, or refused

    def prepare(self, table: sa.Table, row: Row, *, is_own: bool) -> Row | None:
        """Return the row that is to be inserted for that of a line, or None if it has problems."""
        self._has_others |= not is_own
        if table.name == "image_data":
            return self._prepare_data(row, is_own=is_own)
        if table.name in {"thumbnails", "image_sizes"}:
            return self._prepare_rendition(table, row, is_own=is_own)
        if table.name == "file_data":
            return self._prepare_file(row, is_own=is_own)
        if is_own:
            return row
        if table.name == "avatars":
            return self._prepare_avatar(row)
        problem_count = self.lines.problem_count
        if table.name in {"images", "files"}:
            self._distrusted.add(row["id"])
        if table.name == "users":
            row |= {"password_hash": self._prepare_hash(row["password_hash"])}
        if table.name == "site":
            row |= self._make_pictures(row)
        self._check_times(table, row)
        self._check_numbers(table.name, row)
        row = self._check_texts(table.name, row)
        return row if self.lines.problem_count == problem_count else None

    def compare_with_posts(self, table: sa.Table, rows: Mapping[int, Row]) -> None:
        """Check that these rows, by the number of their line, are not older than their post."""
        if table.name not in {"comments", "images", "files"} or not rows:
            return
        posts = self.tables["posts"]
        older = (
            sa.select(table.c.id)
            .join(posts, posts.c.id == table.c.post_id)
            .where(table.c.id.in_([row["id"] for row in rows.values()]))
            .where(table.c.created_at < posts.c.created_at)
        )
        found = set(self.connection.scalars(older))
        for number, row in rows.items():
            if row["id"] in found:
                self.lines.add_problem(
                    f"{table.name}.created_at is before that of the post", number
                )

    def find_excess(self) -> str | None:
        """Return a message about the first row that exceeds a limit, or None."""
        for message, query in TOO_MANY.items() if self._has_others else ():
            found = self.connection.scalar(query.limit(1))
            if found is not None:
                return message.format(found)
        return None

    def _check_texts(self, name: str, row: Row) -> Row:
        schema = TEXTS.get(name)
        if schema is None:
            return row
        names = {name for name in schema.fields if row.get(name) is not None}
        try:
            loaded: Row = schema.load({name: row[name] for name in names})
        except ValidationError as error:
            for column, texts in error.normalized_messages().items():
                self.lines.add_problem(f"{name}.{column}: {' '.join(texts).rstrip('.')}")
            return row
        return row | loaded

    def _check_times(self, table: sa.Table, row: Row) -> None:
        lifetime = LIFETIMES.get(table.name)
        for column in table.columns:
            value, name = row[column.name], f"{table.name}.{column.name}"
            if not isinstance(column.type, UtcDateTime) or value is None:
                continue
            if column.name not in ENDS:
                if value > self.time:
                    self.lines.add_problem(f"{name} is in the future")
            elif lifetime and value > self.time + lifetime:
                self.lines.add_problem(f"{name} is too far in the future")
            if column.name in LATER and value < row.get("created_at", value):
                self.lines.add_problem(f"{name} is before created_at")

    def _check_numbers(self, name: str, row: Row) -> None:
        for column in LEAST.keys() & row.keys():
            if not LEAST[column] <= row[column] <= LARGEST:
                self.lines.add_problem(
                    f"{name}.{column} must be from {LEAST[column]} to {LARGEST:,}"
                )

    def _prepare_hash(self, password_hash: str) -> str:
        """Return a hash that can be checked. An empty one becomes one that no password has."""
        if not password_hash:
            return passwords.dummy_hash()
        method, *parts = password_hash.split("$")
        try:
            parse_scrypt_parameters(method)
            is_valid = len(parts) == 2 and all(parts) and password_hash.isascii()
        except ValueError:
            is_valid = False
        if not is_valid:
            self.lines.add_problem(
                "users.password_hash must be empty, or scrypt:N:r:p$salt$hash as Posting writes it"
            )
        return password_hash

    def _prepare_data(self, row: Row, *, is_own: bool) -> Row | None:
        """Return the bytes of an image as they are stored, or None if they are refused."""
        id, images = row["image_id"], self.tables["images"]
        if (is_own and id not in self._distrusted) or id in self._encoded:
            return row
        image = self.connection.execute(sa.select(images).where(images.c.id == id)).first()
        if image is None:  # which the database rejects
            return row
        self._encoded.add(id)
        try:
            new = codec.reencode(row["data"], max_bytes=current_app.config["MAX_IMAGE_BYTES"])
        except codec.ImageError as error:
            self.lines.add_problem(f"image {id}: {str(error).rstrip('.')}")
            return None
        except codec.BusyError:
            self._raise_busy()
        values = {"media_type": new.media_type, "width": new.width, "height": new.height}
        values["size"] = len(new.data)
        sizes = self.tables.get("image_sizes")  # None in a schema before 0027
        if sizes is not None:
            values["resized_at"] = image.resized_at or now()
            if new.renditions.sizes:
                self.connection.execute(sa.insert(sizes), size_rows(id, new.renditions))
        self.connection.execute(sa.update(images).where(images.c.id == id).values(values))
        if new.data != row["data"]:
            click.echo(f"Image {id}: encoded again, without metadata.")
        if new.media_type != image.media_type:
            click.echo(f"Image {id}: its type is {new.media_type} and not {image.media_type}.")
        thumbnail = {"image_id": id, **vars(new.renditions.thumbnail)}
        self.connection.execute(sa.insert(self.tables["thumbnails"]), thumbnail)
        return {"image_id": id, "data": new.data}

    def _prepare_rendition(self, table: sa.Table, row: Row, *, is_own: bool) -> Row | None:
        """Return a thumbnail or size as it is stored, or None if the image has got another one."""
        id, data = row["image_id"], self.tables["image_data"]
        if id in self._encoded:
            return None
        if is_own:
            return row
        found = self.connection.scalar(sa.select(data.c.data).where(data.c.image_id == id))
        if found is None:  # which the database rejects
            return row
        try:
            renditions = codec.make_renditions(found)
        except codec.ImageError as error:
            self.lines.add_problem(f"image {id}: {str(error).rstrip('.')}")
            return None
        except codec.BusyError:
            self._raise_busy()
        if table.name == "thumbnails":
            return {"image_id": id, **vars(renditions.thumbnail)}
        rows = {size["side"]: size for size in size_rows(id, renditions)}
        return rows.get(row["side"])

    def _prepare_file(self, row: Row, *, is_own: bool) -> Row | None:
        """Return the bytes of a file, or None if a request with them would be refused."""
        id, files = row["file_id"], self.tables["files"]
        if is_own and id not in self._distrusted:
            return row
        name = self.connection.scalar(sa.select(files.c.name).where(files.c.id == id))
        if name is None:  # which the database rejects
            return row
        try:
            if clean_name(name) != name:
                raise FileError("The name must be one of a file, without invisible characters.")
            check_file(name, row["data"])
            most = current_app.config["MAX_FILE_BYTES"]
            if len(row["data"]) > most:
                raise FileError(f"It may have at most {most:,} bytes.")
        except FileError as error:
            self.lines.add_problem(f"file {id}: {str(error).rstrip('.')}")
            return None
        return row

    def _prepare_avatar(self, row: Row) -> Row | None:
        """Return an avatar that is made of the picture of a row, or None if it is refused."""
        make, columns = codec.make_faces, ("data", "small")
        faces = self._make_again(make, f"avatar {row['id']}", row["data"], columns)
        return row | faces if faces else None

    def _make_pictures(self, row: Row) -> Row:
        """Return the columns of the logo and the cover of the site, made of those of its row."""
        pictures: Row = {}
        for name, make in (("logo", codec.make_faces), ("cover", codec.make_covers)):
            if data := row.get(name):
                pictures |= self._make_again(make, f"the {name}", data, (name, f"small_{name}"))
        return pictures

    def _make_again(
        self,
        make: Callable[[bytes], Mapping[int, bytes]],
        name: str,
        data: bytes,
        columns: tuple[str, str],
    ) -> Row:
        """Return two columns with pictures made of another one, or none if it is refused."""
        try:
            return dict(zip(columns, make(data).values(), strict=True))
        except codec.ImageError as error:
            self.lines.add_problem(f"{name}: {str(error).rstrip('.')}")
            return {}
        except codec.BusyError:
            self._raise_busy()

    def _raise_busy(self) -> NoReturn:
        raise self.lines.error("too little time or memory for this picture; import the file again")
