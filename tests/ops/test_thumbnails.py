"""`flask images thumbnails`."""

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.transactions import transaction
from posting.images import codec
from posting.images.models import ImageData, Thumbnail
from tests.helpers import pictures
from tests.helpers.uploads import row_counts

pytestmark = pytest.mark.usefixtures("stays_consistent")
MAKE = ("images", "thumbnails")


@pytest.fixture
def images(app, alice, post):
    """Images of several formats, without thumbnails."""
    images = [
        alice.add_image(post, pictures.encoded(pictures.scene("RGB", (640, 480)), format))
        for format in ("PNG", "JPEG", "WEBP", "GIF")
    ]
    images.append(alice.add_image(post, pictures.animation("GIF")))
    with app.app_context(), transaction() as connection:
        connection.execute(sa.delete(Thumbnail))
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


def test_missing_thumbnails_are_made(flask, anonymous, post, images, thumbnails):
    assert thumbnails(images) == [None] * 5
    assert flask(*MAKE) == (0, "Made 5 thumbnails.\n")
    expected = [codec.make_thumbnail(anonymous.get(image["url"]).data) for image in images]
    assert thumbnails(images) == [thumbnail.data for thumbnail in expected]
    assert anonymous.get(f"/posts/{post['id']}").json["images"] == images
    assert flask(*MAKE) == (0, "Made 0 thumbnails.\n")


def test_a_thumbnail_is_never_made_again(app, flask, alice, post, thumbnails):
    image = alice.add_image(post)
    with app.app_context(), transaction() as connection:
        connection.execute(sa.update(Thumbnail).values(data=b"x"))
    assert flask(*MAKE) == (0, "Made 0 thumbnails.\n")
    assert thumbnails([image]) == [b"x"]


def test_the_command_goes_on_where_it_was_interrupted(flask, images, thumbnails, monkeypatch):
    make, calls = codec.make_thumbnail, []

    def make_two(data):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(data)
        return make(data)

    with monkeypatch.context() as patch:
        patch.setattr(codec, "make_thumbnail", make_two)
        assert flask(*MAKE)[0] == 1
    assert thumbnails(images).count(None) == 3
    assert flask(*MAKE) == (0, "Made 3 thumbnails.\n")
    assert None not in thumbnails(images)


def test_images_that_cannot_be_decoded_are_named_and_skipped(app, post, images, thumbnails, damage):
    damage(images[1])
    damage(images[3])
    result = app.test_cli_runner().invoke(args=MAKE)
    assert (result.exit_code, result.stdout) == (1, "Made 3 thumbnails.\n")
    lines = [line for line in result.stderr.splitlines() if line.startswith("Image ")]
    reason = "Cannot be decoded: it is damaged."
    expected = [f"Image {images[n]['id']} of post {post['id']}: {reason}" for n in (1, 3)]
    assert sorted(lines) == sorted(expected)
    assert [found is None for found in thumbnails(images)] == [False, True, False, True, False]


def test_images_without_the_memory_or_time_to_decode_are_named(app, images, monkeypatch):
    def refuse(_data):
        raise codec.BusyError

    monkeypatch.setattr(codec, "make_thumbnail", refuse)
    result = app.test_cli_runner().invoke(args=MAKE)
    assert (result.exit_code, result.stdout) == (1, "Made 0 thumbnails.\n")
    assert result.stderr.count("There was too little time or memory.") == 5


@pytest.fixture
def meanwhile(app, monkeypatch):
    """Return a function that sets what happens to each image while its thumbnail is made."""
    make = codec.make_thumbnail

    def meanwhile(action):
        def make_and_act(data):
            thumbnail = make(data)
            of_data = sa.select(ImageData.image_id).where(ImageData.data == data)
            with app.app_context(), db.engine.connect() as connection:
                image_id = connection.scalar(of_data)
            action(image_id)
            return thumbnail

        monkeypatch.setattr(codec, "make_thumbnail", make_and_act)

    return meanwhile


def test_images_that_are_deleted_meanwhile_are_no_error(app, flask, alice, images, meanwhile):
    """No lock is held while an image is decoded."""
    meanwhile(lambda id: alice.delete(f"/images/{id}"))
    assert flask(*MAKE) == (0, "Made 0 thumbnails.\n")
    assert row_counts(app) == [0] * 3


def test_thumbnails_that_are_made_meanwhile_are_kept(app, flask, images, thumbnails, meanwhile):
    def make_another(id):
        with app.app_context(), transaction() as connection:
            row = {"image_id": id, "width": 1, "height": 1, "data": b"x"}
            connection.execute(sa.insert(Thumbnail), row)

    meanwhile(make_another)
    assert flask(*MAKE) == (0, "Made 0 thumbnails.\n")
    assert thumbnails(images) == [b"x"] * 5


def test_progress_is_shown(app, images, monkeypatch):
    monkeypatch.setattr("posting.progress.SECONDS_BETWEEN_LINES", 0)
    result = app.test_cli_runner().invoke(args=MAKE)
    assert result.stderr.splitlines() == [
        f"Making thumbnails: {number} of 5" for number in range(6)
    ]
