"""Make the thumbnails and sizes of images that lack them, such as those of an earlier version."""

import sqlalchemy as sa

from posting.db.transactions import Row, snapshot, transaction
from posting.db.types import now
from posting.images import codec
from posting.images.models import Image, ImageData, ImageSize, Thumbnail
from posting.images.store import size_rows
from posting.ops.files import command_errors
from posting.progress import progress

IS_INCOMPLETE = sa.or_(~Image.has_thumbnail, Image.resized_at.is_(None))
NEXT = (
    sa.select(Image.id, Image.post_id, ImageData.data)
    .join(ImageData, ImageData.image_id == Image.id)
    .where(IS_INCOMPLETE, Image.id > sa.bindparam("last"))
    .order_by(Image.id)
    .limit(1)
)


def count_incomplete(connection: sa.Connection) -> int:
    """Return the number of images without a thumbnail or sizes."""
    incomplete = sa.select(sa.func.count()).select_from(Image).where(IS_INCOMPLETE)
    return connection.scalar(incomplete) or 0


def complete() -> tuple[int, list[str]]:
    """Make what is missing, one image after the other. Each is committed when it is made.

    Return the number of completed images, and a message about each image that is still incomplete.
    Raise ClickException if the database fails.
    """
    made, failures, last = 0, [], ""
    with command_errors("The thumbnails cannot be made"):
        with snapshot() as connection:
            incomplete = count_incomplete(connection)
        with progress("Making thumbnails", incomplete) as advance:
            while image := _next_image(last):
                try:
                    made += _add(image.id, codec.make_renditions(image.data))
                except codec.ImageError as error:
                    failures.append(f"Image {image.id} of post {image.post_id}: {error}")
                except codec.BusyError:
                    reason = "There was too little time or memory. Run this command again."
                    failures.append(f"Image {image.id} of post {image.post_id}: {reason}")
                last = image.id
                advance(1)
    return made, failures


def _next_image(last: str) -> Row | None:
    """Return the next incomplete image, by id."""
    with snapshot() as connection:
        return connection.execute(NEXT, {"last": last}).first()


def _add(image_id: str, renditions: codec.Renditions) -> int:
    """Add what an image lacks, and return the number of completed images."""
    is_it = Image.id == image_id
    thumbnail = vars(renditions.thumbnail) | {"image_id": image_id}
    sizes = size_rows(image_id, renditions)
    with transaction() as connection:
        # The image may have been deleted or completed meanwhile. The second query sees what was
        # committed before the first one has locked the row.
        connection.execute(sa.select(Image.id).where(is_it).with_for_update())
        image = connection.execute(
            sa.select(Image.has_thumbnail.label("has_thumbnail"), Image.resized_at).where(
                is_it, IS_INCOMPLETE
            )
        ).first()
        if image is None:
            return 0
        if not image.has_thumbnail:
            connection.execute(sa.insert(Thumbnail), thumbnail)
        if image.resized_at is None:
            # An archive that was made by hand may have had some.
            connection.execute(sa.delete(ImageSize).where(ImageSize.image_id == image_id))
            if sizes:
                connection.execute(sa.insert(ImageSize), sizes)
            connection.execute(sa.update(Image).where(is_it).values(resized_at=now()))
    return 1
