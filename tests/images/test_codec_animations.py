"""The image codec, called in this process: animations."""

import random
from io import BytesIO

import pytest
from PIL import Image, ImageSequence

from posting.images.codec.child import ImageError
from tests.helpers import pictures
from tests.helpers.image_files import SECRET, difference, open_image, reencode, reencode_and_check


@pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP"])
@pytest.mark.parametrize("mode", ["P", "RGBA"])
def test_frames_and_durations_are_kept(format, mode):
    data = pictures.animation(format, mode=mode, **({"lossless": True} if format == "WEBP" else {}))
    before, after = Image.open(BytesIO(data)), reencode_and_check(data)
    assert after.n_frames == before.n_frames == 5
    assert after.info["loop"] == before.info["loop"] == 3
    for one, two in zip(ImageSequence.Iterator(before), ImageSequence.Iterator(after), strict=True):
        one.load()
        two.load()
        assert one.info["duration"] == two.info["duration"]
        assert difference(one, two) <= (3 if format == "WEBP" else 0)


def test_a_gif_that_plays_once_still_plays_once():
    first, *rest = pictures.frames(3)
    data = pictures.encoded(first, "GIF", save_all=True, append_images=rest)
    assert "loop" not in reencode_and_check(data).info


def test_a_gif_still_clears_its_frames():
    frames = []
    for number in range(4):
        frame = Image.new("RGBA", (32, 16), (0, 0, 0, 0))
        frame.paste((200, 0, 0, 255), (number * 8, 0, number * 8 + 8, 16))
        frames.append(frame)
    data = pictures.encoded(
        frames[0], "GIF", save_all=True, append_images=frames[1:], duration=100, disposal=2
    )
    after = reencode_and_check(data)
    for number, frame in enumerate(ImageSequence.Iterator(after)):
        displayed = frame.convert("RGBA")
        covered = [displayed.getpixel((x, 8))[3] > 0 for x in range(0, 32, 8)]
        assert covered == [column == number for column in range(4)]


def test_a_gif_of_small_changes_stays_small():
    """Even if a part of it is transparent, such as its corner here."""
    background = Image.effect_noise((320, 240), 60).convert("RGBA")
    frames = []
    for number in range(20):
        frame = background.copy()
        frame.paste((0, 0, 0, 0), (0, 0, 40, 40))
        frame.paste((200, 0, 0, 255), (number * 8, 100, number * 8 + 8, 108))
        frames.append(frame)
    data = pictures.encoded(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=50)
    after = reencode_and_check(data)
    for one, two in zip(
        ImageSequence.Iterator(open_image(data)), ImageSequence.Iterator(after), strict=True
    ):
        assert difference(one, two) == 0
    assert len(reencode(data).data) < 1.2 * len(data)


@pytest.mark.parametrize("seed", range(8))
def test_random_gifs_keep_their_transparency(seed):
    rng, frames = random.Random(seed), []
    for _ in range(6):
        frame = Image.new("RGBA", (16, 16))
        for _ in range(rng.randrange(4)):
            left, top = rng.randrange(16), rng.randrange(16)
            color = rng.choice([(200, 0, 0, 255), (0, 0, 200, 255), (0, 0, 0, 0)])
            frame.paste(color, (left, top, left + 6, top + 6))
        frames.append(frame)
    data = pictures.encoded(
        frames[0], "GIF", save_all=True, append_images=frames[1:], duration=50, disposal=2
    )
    after = reencode_and_check(data)
    actual = [frame.convert("RGBA") for frame in ImageSequence.Iterator(after)]
    expected = [frame.convert("RGBA") for frame in ImageSequence.Iterator(open_image(data))]
    assert [frame.getchannel("A").tobytes() for frame in actual] == [
        frame.getchannel("A").tobytes() for frame in expected
    ]


def test_an_apng_keeps_its_default_image():
    first, *rest = pictures.frames(4, "RGB")
    data = pictures.encoded(
        first, "PNG", save_all=True, default_image=True, append_images=rest, duration=100
    )
    before, after = open_image(data), reencode_and_check(data)
    assert before.info["default_image"]
    assert after.info["default_image"]
    assert after.n_frames == before.n_frames == 4


def test_metadata_is_removed():
    for format, options in {
        "GIF": {"comment": SECRET},
        "PNG": {"exif": pictures.exif(), "pnginfo": pictures.png_texts(SECRET.decode())},
        "WEBP": {"exif": pictures.exif(), "xmp": SECRET},
    }.items():
        data = pictures.animation(format, mode="RGB", **options)
        assert SECRET in data
        assert reencode_and_check(data).n_frames == 5


@pytest.mark.parametrize(
    ("count", "size"),
    [(1001, (1, 1)), (2, (3001, 3000)), (8, (2600, 2600))],
    ids=["frames", "pixels per frame", "pixels in total"],
)
def test_frames_and_pixels_are_limited(count, size):
    frames = [Image.new("L", size, number % 2 * 255) for number in range(count)]
    data = pictures.encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    with pytest.raises(ImageError, match="An animation must"):
        reencode(data)
