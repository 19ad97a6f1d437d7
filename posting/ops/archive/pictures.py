"""The pictures of an archive: those that no export has written are treated like uploads."""

from collections.abc import Mapping
from typing import NoReturn

import click
import sqlalchemy as sa
from flask import current_app

from posting.images import codec
from posting.ops.archive.lines import LineReader, Row


class Pictures:
    """The pictures of an import.

    A picture passes as it is if an export has written its line and that of its image. Any other is
    encoded again, and gets a new thumbnail.
    """

    def __init__(
        self, connection: sa.Connection, tables: Mapping[str, sa.Table], lines: LineReader
    ) -> None:
        self.connection, self.tables, self.lines = connection, tables, lines
        self._distrusted: set[str] = set()  # images whose bytes must be decoded
        self._encoded: set[str] = set()  # images whose bytes were encoded again, or refused

    def distrust(self, image_id: str) -> None:
        """Encode the bytes of an image again in any case, because they may not fit the image."""
        self._distrusted.add(image_id)

    def prepare_data(self, row: Row, *, is_own: bool) -> Row | None:
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
        self.connection.execute(sa.update(images).where(images.c.id == id).values(values))
        if new.data != row["data"]:
            click.echo(f"Image {id}: encoded again, without metadata.")
        if new.media_type != image.media_type:
            click.echo(f"Image {id}: its type is {new.media_type} and not {image.media_type}.")
        self._add_thumbnail(id, new.thumbnail)
        return {"image_id": id, "data": new.data}

    def prepare_thumbnail(self, row: Row, *, is_own: bool) -> Row | None:
        """Return a thumbnail as it is stored, or None if the image has got another one."""
        id, data = row["image_id"], self.tables["image_data"]
        if id in self._encoded:
            return None
        if is_own:
            return row
        found = self.connection.scalar(sa.select(data.c.data).where(data.c.image_id == id))
        if found is None:  # which the database rejects
            return row
        try:
            thumbnail = codec.make_thumbnail(found)
        except codec.ImageError as error:
            self.lines.add_problem(f"image {id}: {str(error).rstrip('.')}")
            return None
        except codec.BusyError:
            self._raise_busy()
        return {"image_id": id, **vars(thumbnail)}

    def _add_thumbnail(self, image_id: str, thumbnail: codec.Thumbnail) -> None:
        row = {"image_id": image_id, **vars(thumbnail)}
        self.connection.execute(sa.insert(self.tables["thumbnails"]), row)

    def _raise_busy(self) -> NoReturn:
        raise self.lines.error("too little time or memory for this picture; import the file again")
