"""Make the thumbnails of images that have none, such as those of an archive without thumbnails."""

import sqlalchemy as sa

from posting.db.transactions import Row, snapshot, transaction
from posting.images import codec
from posting.images.models import Image, ImageData, Thumbnail
from posting.ops.files import command_errors
from posting.progress import progress

NEXT = (
    sa.select(Image.id, Image.post_id, ImageData.data)
    .join(ImageData, ImageData.image_id == Image.id)
    .where(~Image.has_thumbnail, Image.id > sa.bindparam("last"))
    .order_by(Image.id)
    .limit(1)
)


def count_missing(connection: sa.Connection) -> int:
    """Return the number of images without a thumbnail."""
    missing = sa.select(sa.func.count()).select_from(Image).where(~Image.has_thumbnail)
    return connection.scalar(missing) or 0


def make_missing() -> tuple[int, list[str]]:
    """Make all missing thumbnails, one after the other. Each is committed when it is made.

    Return the number of thumbnails, and a message about each image that has still none. Raise
    ClickException if the database fails.
    """
    made, failures, last = 0, [], ""
    with command_errors("The thumbnails cannot be made"):
        with snapshot() as connection:
            missing = count_missing(connection)
        with progress("Making thumbnails", missing) as advance:
            while image := _next_image(last):
                try:
                    made += _add(image.id, codec.make_thumbnail(image.data))
                except codec.ImageError as error:
                    failures.append(f"Image {image.id} of post {image.post_id}: {error}")
                except codec.BusyError:
                    reason = "There was too little time or memory. Run this command again."
                    failures.append(f"Image {image.id} of post {image.post_id}: {reason}")
                last = image.id
                advance(1)
    return made, failures


def _next_image(last: str) -> Row | None:
    """Return the next image without a thumbnail, by id."""
    with snapshot() as connection:
        return connection.execute(NEXT, {"last": last}).first()


def _add(image_id: str, thumbnail: codec.Thumbnail) -> int:
    """Add a thumbnail, and return the number of added rows."""
    try:
        with transaction() as connection:
            connection.execute(sa.insert(Thumbnail), vars(thumbnail) | {"image_id": image_id})
    except sa.exc.IntegrityError:  # the image was deleted, or has got a thumbnail meanwhile
        return 0
    return 1
