"""`flask images thumbnails`."""

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.transactions import transaction
from posting.db.types import now
from posting.images import codec
from posting.images.models import Image, ImageData, ImageSize, Thumbnail
from tests.helpers import pictures
from tests.helpers.uploads import row_counts

pytestmark = pytest.mark.usefixtures("stays_consistent")
MAKE = ("images", "thumbnails")


@pytest.fixture
def images(app, alice, post):
    """Images of several formats, without thumbnails and sizes, as of an earlier version."""
    images = [
        alice.add_image(post, pictures.encoded(pictures.scene("RGB", (1000, 750)), format))
        for format in ("PNG", "JPEG", "WEBP", "GIF")
    ]
    images.append(alice.add_image(post, pictures.animation("GIF")))
    with app.app_context(), transaction() as connection:
        connection.execute(sa.delete(Thumbnail))
        connection.execute(sa.delete(ImageSize))
        connection.execute(sa.update(Image).values(resized_at=None))
    return images


@pytest.fixture
def thumbnails(anonymous):
    """Return a function that returns the thumbnails of images, or None for those without."""

    def thumbnails(images):
        responses = [anonymous.get(image["thumbnail_url"]) for image in images]
        return [response.data if response.status_code == 200 else None for response in responses]

    return thumbnails


@pytest.fixture
def damage(app):
    """Return a function that damages the bytes of an image, and keeps their number."""

    def damage(image):
        damaged = {"data": b"\x89PNG\r\n\x1a\n".ljust(image["size"], b"x")}
        own = ImageData.image_id == image["id"]
        with app.app_context(), transaction() as connection:
            connection.execute(sa.update(ImageData).where(own).values(damaged))

    return damage


def test_missing_thumbnails_and_sizes_are_made(flask, anonymous, post, images, thumbnails):
    assert thumbnails(images) == [None] * 5
    former = anonymous.get(f"/posts/{post['id']}").json["images"]
    assert former == [image | {"thumbnail_url": None, "sizes": []} for image in images]
    assert flask(*MAKE) == (0, "Completed 5 images.\n")
    for image in images:
        made = codec.make_renditions(anonymous.get(image["url"]).data)
        assert thumbnails([image]) == [made.thumbnail.data]
        files = [anonymous.get(size["url"]).data for size in image["sizes"]]
        assert files == [size.data for size in made.sizes.values()]
    assert anonymous.get(f"/posts/{post['id']}").json["images"] == images
    assert [len(image["sizes"]) for image in images] == [1, 1, 1, 1, 0]
    assert flask(*MAKE) == (0, "Completed 0 images.\n")


def test_sizes_are_made_beside_a_thumbnail(app, flask, alice, anonymous, post):
    """As after an upgrade from version 1.0.0."""
    image = alice.add_image(post, pictures.encoded(pictures.scene("RGB", (1000, 750)), "JPEG"))
    with app.app_context(), transaction() as connection:
        connection.execute(sa.delete(ImageSize))
        connection.execute(sa.update(Image).values(resized_at=None))
    assert anonymous.get(image["sizes"][0]["url"]).status_code == 404
    assert flask(*MAKE) == (0, "Completed 1 image.\n")
    assert anonymous.get(f"/images/{image['id']}/metadata").json == image


def test_a_thumbnail_is_never_made_again(app, flask, alice, post, thumbnails):
    image = alice.add_image(post)
    with app.app_context(), transaction() as connection:
        connection.execute(sa.update(Thumbnail).values(data=b"x"))
    assert flask(*MAKE) == (0, "Completed 0 images.\n")
    assert thumbnails([image]) == [b"x"]


def test_the_command_goes_on_where_it_was_interrupted(flask, images, thumbnails, monkeypatch):
    make, calls = codec.make_renditions, []

    def make_two(data):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(data)
        return make(data)

    with monkeypatch.context() as patch:
        patch.setattr(codec, "make_renditions", make_two)
        assert flask(*MAKE)[0] == 1
    assert thumbnails(images).count(None) == 3
    assert flask(*MAKE) == (0, "Completed 3 images.\n")
    assert None not in thumbnails(images)


def test_images_that_cannot_be_decoded_are_named_and_skipped(app, post, images, thumbnails, damage):
    damage(images[1])
    damage(images[3])
    result = app.test_cli_runner().invoke(args=MAKE)
    assert (result.exit_code, result.stdout) == (1, "Completed 3 images.\n")
    lines = [line for line in result.stderr.splitlines() if line.startswith("Image ")]
    reason = "Cannot be decoded: it is damaged."
    expected = [f"Image {images[n]['id']} of post {post['id']}: {reason}" for n in (1, 3)]
    assert sorted(lines) == sorted(expected)
    assert [found is None for found in thumbnails(images)] == [False, True, False, True, False]


def test_images_without_the_memory_or_time_to_decode_are_named(app, images, monkeypatch):
    def refuse(_data):
        raise codec.BusyError

    monkeypatch.setattr(codec, "make_renditions", refuse)
    result = app.test_cli_runner().invoke(args=MAKE)
    assert (result.exit_code, result.stdout) == (1, "Completed 0 images.\n")
    assert result.stderr.count("There was too little time or memory.") == 5


@pytest.fixture
def meanwhile(app, monkeypatch):
    """Return a function that sets what happens to each image while its thumbnail is made."""
    make = codec.make_renditions

    def meanwhile(action):
        def make_and_act(data):
            renditions = make(data)
            of_data = sa.select(ImageData.image_id).where(ImageData.data == data)
            with app.app_context(), db.engine.connect() as connection:
                image_id = connection.scalar(of_data)
            action(image_id)
            return renditions

        monkeypatch.setattr(codec, "make_renditions", make_and_act)

    return meanwhile


def test_images_that_are_deleted_meanwhile_are_no_error(app, flask, alice, images, meanwhile):
    """No lock is held while an image is decoded."""
    meanwhile(lambda id: alice.delete(f"/images/{id}"))
    assert flask(*MAKE) == (0, "Completed 0 images.\n")
    assert row_counts(app) == [0] * 3


def test_thumbnails_that_are_made_meanwhile_are_kept(app, flask, images, thumbnails, meanwhile):
    def make_another(id):
        with app.app_context(), transaction() as connection:
            row = {"image_id": id, "width": 1, "height": 1, "data": b"x"}
            connection.execute(sa.insert(Thumbnail), row)
            connection.execute(sa.update(Image).where(Image.id == id).values(resized_at=now()))

    meanwhile(make_another)
    assert flask(*MAKE) == (0, "Completed 0 images.\n")
    assert thumbnails(images) == [b"x"] * 5


def test_progress_is_shown(app, images, monkeypatch):
    monkeypatch.setattr("posting.progress.SECONDS_BETWEEN_LINES", 0)
    result = app.test_cli_runner().invoke(args=MAKE)
    assert result.stderr.splitlines() == [
        f"Making thumbnails: {number} of 5" for number in range(6)
    ]
