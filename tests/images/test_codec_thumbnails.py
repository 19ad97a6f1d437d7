"""The image codec, called in this process: thumbnails."""

import io
import itertools
import random

import pytest
from PIL import Image, ImageChops, ImageStat

from posting.images.codec import (
    COVER_LIMITS,
    FACE_LIMITS,
    LIMITS,
    MAX_THUMBNAIL_BYTES,
    THUMBNAIL_SIDE,
)
from posting.images.codec import child as codec
from tests.helpers import pictures
from tests.helpers.image_files import SECRET, difference, open_renditions, open_thumbnail, reencode


def thumbnail_of(data):
    return open_thumbnail(reencode(data))


def noise(mode, size):
    """Return an image that no format compresses."""
    count = size[0] * size[1] * len(Image.new(mode, (1, 1)).getbands())
    return Image.frombytes(mode, size, random.Random(1).randbytes(count))


def whitened(image):
    """Return an image in front of white, since the colors of what is transparent do not count."""
    background = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(background, image.convert("RGBA")).convert("RGB")


@pytest.mark.parametrize("side", [*LIMITS, *FACE_LIMITS, *COVER_LIMITS])
def test_the_limits_are_those_of_the_service(side):
    assert codec.TRIES.keys() == LIMITS.keys() | FACE_LIMITS.keys() | COVER_LIMITS.keys()
    assert codec.SHAPES.keys() == FACE_LIMITS.keys() | COVER_LIMITS.keys()
    sides, qualities = zip(*codec.TRIES[side], strict=True)
    assert sides[0] == side
    assert sorted(sides, reverse=True) == [*sides]
    assert sorted(qualities, reverse=True) == [*qualities]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((640, 480), (320, 240)),
        ((480, 640), (240, 320)),
        ((321, 320), (320, 319)),
        ((320, 200), (320, 200)),
        ((32, 32), (32, 32)),
        ((1, 1), (1, 1)),
        ((2000, 1), (320, 1)),
        ((1, 2000), (1, 320)),
    ],
)
@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "GIF"])
def test_the_longest_side_has_320_pixels_and_small_images_are_not_enlarged(format, size, expected):
    assert thumbnail_of(pictures.encoded(pictures.scene("RGB", size), format)).size == expected


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_a_thumbnail_looks_like_its_image(mode):
    image = pictures.scene("L" if mode == "I;16" else mode, (640, 480))
    if mode == "I;16":
        image = Image.frombytes(mode, image.size, bytes(b for p in image.tobytes() for b in (0, p)))
    expected = pictures.scene("L" if mode == "I;16" else mode, (640, 480))
    expected = whitened(expected.convert("RGBA").resize((320, 240)))
    assert difference(whitened(thumbnail_of(pictures.encoded(image, "PNG"))), expected) < 6


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_thumbnail_is_upright(orientation):
    size = (64, 96) if orientation > 4 else (96, 64)
    exif = pictures.exif(orientation=orientation)
    data = pictures.encoded(pictures.scene(size=size), "JPEG", exif=exif, quality=95)
    thumbnail = thumbnail_of(data)
    assert thumbnail.size == (96, 64)
    image = Image.open(io.BytesIO(reencode(data).data))
    assert difference(thumbnail, image) < 6


def test_transparency_is_kept():
    drawing = Image.new("RGBA", (640, 480), (0, 0, 0, 0))
    drawing.paste((200, 0, 0, 255), (0, 0, 320, 480))
    for data in (
        pictures.encoded(drawing, "PNG"),
        pictures.encoded(drawing, "WEBP", lossless=True),
        pictures.encoded(drawing.quantize(16), "PNG"),
        pictures.encoded(drawing, "GIF"),
        pictures.encoded(drawing.convert("LA"), "PNG"),
        # Black is transparent.
        pictures.encoded(drawing.convert("RGB"), "PNG", transparency=(0, 0, 0)),
        pictures.encoded(drawing.convert("L"), "PNG", transparency=0),
    ):
        opacity = thumbnail_of(data).getchannel("A")
        assert opacity.getpixel((40, 120)) == 255
        assert opacity.getpixel((280, 120)) == 0


def test_the_colors_of_what_is_transparent_do_not_run_into_the_rest():
    drawing = Image.new("RGBA", (640, 480), (0, 255, 0, 0))
    for left in range(0, 640, 8):
        drawing.paste((200, 0, 0, 255), (left, 0, left + 3, 480))
    data = pictures.encoded(drawing, "PNG")
    _, green, _ = ImageStat.Stat(thumbnail_of(data).convert("RGBa").convert("RGBA")).mean[:3]
    assert green < 10


def test_colors_are_converted_to_srgb():
    green = Image.new("RGB", (400, 400), (0, 255, 0))
    data = pictures.encoded(green, "PNG", icc_profile=pictures.swapped_profile())
    red, green, _ = thumbnail_of(data).convert("RGB").getpixel((0, 0))
    assert red > 240
    assert green < 15


def test_a_jpeg_for_printing_is_converted():
    image = pictures.scene("RGB", (640, 480))
    thumbnail = thumbnail_of(pictures.encoded(image.convert("CMYK"), "JPEG", quality=95))
    assert difference(thumbnail, image.resize((320, 240))) < 6


@pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP"])
@pytest.mark.parametrize("mode", ["P", "RGB", "RGBA"])
def test_a_thumbnail_of_an_animation_is_its_first_frame(format, mode):
    data = pictures.animation(format, mode=mode)
    assert reencode(data).data
    expected = whitened(pictures.frames(1, mode)[0])
    assert difference(whitened(thumbnail_of(data)), expected) < 6


def test_metadata_is_removed():
    size = (400, 300)
    profile = pictures.swapped_profile()
    for format, options in {
        "PNG": {"exif": pictures.exif(), "pnginfo": pictures.png_texts(SECRET.decode())},
        "JPEG": {"exif": pictures.exif(), "comment": SECRET, "xmp": SECRET},
        "WEBP": {"exif": pictures.exif(), "xmp": SECRET},
        "GIF": {"comment": SECRET},
    }.items():
        animation = {"save_all": True, "append_images": [Image.new("RGB", size)]}
        for others in ({}, animation) if format != "JPEG" else ({},):
            data = pictures.encoded(
                pictures.scene("RGB", size), format, icc_profile=profile, **options, **others
            )
            assert SECRET in data
            thumbnail = thumbnail_of(data)  # which checks the parts of the file
            assert not thumbnail.getexif()
            assert not {"icc_profile", "xmp"} & thumbnail.info.keys()


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
@pytest.mark.parametrize("side", [100, 200, 320, 1000])
def test_a_thumbnail_of_noise_is_small_enough(mode, side):
    image = noise(mode, (side, side))
    thumbnail = thumbnail_of(pictures.encoded(image, "PNG"))
    assert min(thumbnail.size) >= min(100, side)


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_the_last_try_is_small_enough_for_anything(mode):
    tries = codec.TRIES[THUMBNAIL_SIDE][-1:]
    side = THUMBNAIL_SIDE
    checked = Image.effect_noise((side, side), 255).point(lambda value: 255 * (value > 127))
    bands = [ImageChops.offset(checked, band, band) for band in range(len(mode))]
    for image in (noise(mode, (side, side)), Image.merge(mode, bands)):
        _, data = codec._shrink(image, tries, MAX_THUMBNAIL_BYTES / 2)
        assert data is not None


def test_quality_is_lowered_before_the_size():
    photograph = Image.effect_noise((320, 240), 30).convert("RGB")
    tries = codec.TRIES[THUMBNAIL_SIDE]
    sizes = []
    for count in range(1, len(tries) + 1):
        small = photograph
        for each in tries[:count]:
            small, data = codec._shrink(small, [each], 10**6)
        sizes.append(len(data))
    assert sizes == sorted(sizes, reverse=True)
    for (side, _), size in zip(tries, sizes, strict=True):
        image, data = codec._shrink(photograph, tries, size)
        assert (image.width, len(data)) == (side, size)
    assert codec._shrink(photograph, tries, 10)[1] is None


def test_the_same_image_gives_the_same_thumbnail():
    data = pictures.encoded(pictures.scene(size=(640, 480)), "JPEG")
    assert reencode(data).renditions == reencode(data).renditions


class TestSizes:
    @pytest.mark.parametrize(
        ("size", "expected"),
        [
            ((4000, 3000), {640: (640, 480), 1600: (1600, 1200)}),
            ((1000, 2000), {640: (320, 640), 1600: (800, 1600)}),
            ((1600, 1200), {640: (640, 480)}),
            ((641, 400), {640: (640, 399)}),
            ((640, 640), {}),
        ],
    )
    def test_only_smaller_ones_are_made(self, size, expected):
        photograph = Image.effect_noise(size, 30).convert("RGB")
        sizes = open_renditions(reencode(pictures.encoded(photograph, "JPEG", quality=50)))
        assert {side: sizes[side].size for side in sizes if side != THUMBNAIL_SIDE} == expected

    def test_one_with_more_bytes_than_the_image_is_left_out(self):
        tile, drawing = noise("L", (16, 16)), Image.new("L", (2000, 2000))
        for left, top in itertools.product(range(0, 2000, 16), repeat=2):
            drawing.paste(tile, (left, top))
        assert open_renditions(reencode(pictures.encoded(drawing, "PNG"))).keys() == {320}

    @pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP"])
    def test_an_animation_has_none(self, format):
        first, second = noise("RGB", (700, 500)), noise("RGB", (500, 700)).rotate(90, expand=True)
        data = pictures.encoded(
            first, format, save_all=True, append_images=[second], duration=[100, 100]
        )
        assert not reencode(data).renditions.sizes

    @pytest.mark.parametrize("mode", ["L", "LA", "P", "RGB", "RGBA"])
    def test_they_look_like_the_image(self, mode):
        image = pictures.scene(mode, (1000, 750))
        sizes = open_renditions(reencode(pictures.encoded(image, "PNG")))
        if 640 in sizes:
            expected = whitened(image.convert("RGBA").resize((640, 480)))
            assert difference(whitened(sizes[640]), expected) < 6
