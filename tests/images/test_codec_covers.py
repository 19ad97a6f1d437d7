"""Covers: what is cut out of an image, three times as wide as high."""

import io

import pytest
from PIL import Image

from posting.images import codec
from posting.images.codec import COVER_LIMITS, ImageError
from tests.helpers import pictures


def covers_of(image, format="PNG", **options):
    files = codec.make_covers(pictures.encoded(image, format, **options))
    assert files.keys() == COVER_LIMITS.keys()
    assert all(len(files[width]) <= COVER_LIMITS[width] for width in files)
    return [Image.open(io.BytesIO(files[width])) for width in (1280, 768)]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1400, 900), [(1280, 426), (768, 256)]),
        ((900, 1400), [(900, 300), (768, 256)]),
        ((4000, 500), [(1280, 427), (768, 256)]),  # wider than the cover
        ((300, 100), [(300, 100), (300, 100)]),  # not enlarged
        ((2, 2), [(2, 1), (2, 1)]),
        ((1, 1), [(1, 1), (1, 1)]),
    ],
)
@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "GIF"])
def test_it_is_three_times_as_wide_as_high_and_small_images_are_not_enlarged(
    format, size, expected
):
    covers = covers_of(pictures.scene("RGB", size), format)
    assert [cover.size for cover in covers] == expected


def stripes(size, *, across):
    """Return an image of three stripes, of which the one in the middle is green."""
    image, (width, height) = Image.new("RGB", size, (200, 0, 0)), size
    top = (height - 300) // 2 if across else 0
    left = 0 if across else (width - 900) // 2
    image.paste((0, 200, 0), (left, top, width - left, height - top))
    return image


@pytest.mark.parametrize(("size", "across"), [((900, 1400), True), ((2400, 300), False)])
def test_it_is_the_middle_of_the_image(size, across):
    for cover in covers_of(stripes(size, across=across)):
        width, height = cover.size
        corners = [(3, 3), (width - 4, 3), (3, height - 4), (width - 4, height - 4)]
        for place in [*corners, (width // 2, height // 2)]:
            red, green, _ = cover.convert("RGB").getpixel(place)
            assert (green > 150, red < 60) == (True, True)


def test_of_an_animation_it_is_the_first_frame():
    frames = [Image.new("RGB", (600, 200), color) for color in ((0, 200, 0), (200, 0, 0))]
    for cover in covers_of(frames[0], "GIF", save_all=True, append_images=frames[1:]):
        red, green, _ = cover.convert("RGB").getpixel((300, 100))
        assert (green > 150, red < 60) == (True, True)
        assert not getattr(cover, "is_animated", False)


def test_what_is_transparent_stays_so():
    for cover in covers_of(Image.new("RGBA", (600, 200), (0, 200, 0, 0))):
        assert cover.getchannel("A").getextrema() == (0, 0)


def test_noise_fits_into_the_limits():
    covers_of(pictures.noise((2000, 1400)))


def test_a_file_that_is_not_an_image():
    with pytest.raises(ImageError, match="Must be a PNG, JPEG, WebP or GIF image"):
        codec.make_covers(b"x")
