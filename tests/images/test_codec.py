"""The image codec, called in this process: still images."""

import zlib
from io import BytesIO

import pytest
from PIL import Image, ImageCms

from tests.helpers import pictures
from tests.helpers.image_files import (
    SECRET,
    difference,
    open_image,
    part_names,
    quantization,
    reencode,
    reencode_and_check,
)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_a_png_keeps_its_mode_and_pixels(mode):
    image = pictures.scene("L" if mode == "I;16" else mode)
    if mode == "I;16":
        image = Image.frombytes(mode, (2, 1), b"\x01\x02\xfe\xff")
    result = reencode_and_check(pictures.encoded(image, "PNG"))
    assert result.mode == mode
    assert result.tobytes() == image.tobytes()


def test_16_bit_channels_are_reduced_to_8():
    data = pictures.build_png((1, 1, 16, 2), b"\0\x12\x34\x56\x78\x9a\xbc")
    assert reencode_and_check(data).tobytes() == b"\x12\x56\x9a"


@pytest.mark.parametrize(
    ("depth", "kind", "row", "key"),
    [
        (1, 0, b"\x40", b"\0\1"),
        (2, 0, b"\x30", b"\0\3"),
        (4, 0, b"\x0f", b"\0\x0f"),
        (8, 0, b"\0\xff", b"\0\xff"),
        (16, 0, b"\0\0\x12\x34", b"\x12\x34"),
        (8, 2, b"\0\0\0\1\2\3", b"\0\1\0\2\0\3"),
        (16, 2, b"\0\0" * 3 + b"\x12\x34\x56\x78\x9a\xbc", b"\x12\x34\x56\x78\x9a\xbc"),
    ],
)
def test_a_transparent_color_stays_transparent(depth, kind, row, key):
    result = reencode_and_check(
        pictures.build_png((2, 1, depth, kind), b"\0" + row, (b"tRNS", key))
    )
    if depth == 16 and kind == 0:
        assert result.info["transparency"] == result.getpixel((1, 0)) != result.getpixel((0, 0))
    else:
        assert result.convert("RGBA").getchannel("A").tobytes() == b"\xff\0"


@pytest.mark.parametrize("format", ["PNG", "GIF"])
def test_a_palette_keeps_its_transparency(format):
    image = pictures.scene("RGB").quantize(8)
    data = pictures.encoded(image, format, transparency=image.getpixel((20, 20)))
    result = reencode_and_check(data)
    assert result.convert("RGBA").getpixel((20, 20))[3] == 0
    assert difference(result, open_image(data)) == 0


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("lossless", [True, False])
def test_a_webp_keeps_its_appearance(mode, lossless):
    data = pictures.encoded(pictures.scene(mode), "WEBP", lossless=lossless)
    result = reencode_and_check(data)
    assert result.mode == mode
    assert difference(result, open_image(data)) <= (0 if lossless else 3)


@pytest.mark.parametrize("quality", [30, 75, 95])
@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:0"])
def test_a_jpeg_keeps_its_quality_and_size(quality, subsampling):
    data = pictures.encoded(
        pictures.scene(size=(96, 64)), "JPEG", quality=quality, subsampling=subsampling
    )
    result = reencode_and_check(data)
    assert quantization(result) == quantization(open_image(data))
    assert difference(result, open_image(data)) < 1
    assert len(reencode(data).data) < 1.2 * len(data)


def test_jpeg_tables_may_have_any_number():
    for mode in ("RGB", "L"):
        plain = pictures.encoded(pictures.scene(mode, (96, 64)), "JPEG", quality=60)
        result = reencode_and_check(pictures.swap_quantization_tables(plain))
        assert quantization(result) == quantization(open_image(plain))
        assert difference(result, open_image(plain)) < 1


def test_a_grayscale_jpeg_stays_grayscale():
    assert reencode_and_check(pictures.encoded(pictures.scene("L"), "JPEG")).mode == "L"


def test_a_cmyk_jpeg_becomes_rgb():
    data = pictures.encoded(pictures.scene("RGB").convert("CMYK"), "JPEG", quality=95)
    result = reencode_and_check(data)
    assert result.mode == "RGB"
    assert difference(result, pictures.scene("RGB")) < 3


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_srgb_and_unusable_profiles_do_not_change_colors(format):
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for profile in (srgb, lab, b"no profile", b"\0" * 200):
        data = pictures.encoded(pictures.scene(), format, icc_profile=profile)
        result = reencode_and_check(data)
        assert "icc_profile" not in result.info
        assert difference(result, open_image(data)) < 3


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P"])
def test_other_color_spaces_are_converted_to_srgb(mode):
    green = Image.new("RGB", (8, 8), (0, 255, 0)).convert(mode)
    data = pictures.encoded(green, "PNG", icc_profile=pictures.swapped_profile())
    red, green, _ = reencode_and_check(data).convert("RGB").getpixel((0, 0))
    assert red > 250
    assert green < 5


def test_converting_colors_keeps_the_palette():
    """Otherwise the image would become three times as large."""
    image = pictures.scene("RGB", (64, 64)).quantize(16)
    profile = pictures.swapped_profile()
    data = pictures.encoded(image, "PNG", icc_profile=profile, transparency=0)
    result = reencode_and_check(data)
    assert (result.mode, result.info["transparency"]) == ("P", 0)
    assert result.tobytes() == open_image(data).tobytes()
    assert difference(result, open_image(data)) > 3


def test_converting_colors_keeps_transparency():
    profile = b"a name\0\0" + zlib.compress(pictures.swapped_profile())
    chunks = ((b"iCCP", profile), (b"tRNS", b"\0\1\0\2\0\3"))
    data = pictures.build_png((2, 1, 8, 2), b"\0\1\2\3\0\xff\0", *chunks)
    result = reencode_and_check(data)
    assert result.getpixel((0, 0))[3] == 0
    assert result.getpixel((1, 0))[0] > 250


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_image_is_turned_upright_and_loses_its_exif(format, orientation):
    upright = pictures.scene(size=(96, 64))
    turned = upright
    for method in {
        1: (),
        2: (Image.Transpose.FLIP_LEFT_RIGHT,),
        3: (Image.Transpose.ROTATE_180,),
        4: (Image.Transpose.FLIP_TOP_BOTTOM,),
        5: (Image.Transpose.TRANSPOSE,),
        6: (Image.Transpose.ROTATE_90,),
        7: (Image.Transpose.TRANSVERSE,),
        8: (Image.Transpose.ROTATE_270,),
    }[orientation]:
        turned = upright.transpose(method)
    exif = pictures.exif(orientation=orientation)
    data = pictures.encoded(turned, format, exif=exif, quality=95, lossless=True)
    assert SECRET in data
    result = reencode_and_check(data)
    assert difference(result, upright) < 3
    assert sum(result.getpixel((2, 2))) < sum(result.getpixel((93, 2)))


def test_texts_and_comments_are_removed():
    for format, options in {
        "PNG": {"pnginfo": pictures.png_texts(SECRET.decode())},
        "JPEG": {"comment": SECRET, "xmp": SECRET},
        "GIF": {"comment": SECRET},
        "WEBP": {"xmp": SECRET},
    }.items():
        data = pictures.encoded(
            pictures.scene("P" if format == "GIF" else "RGB"), format, **options
        )
        assert SECRET in data
        reencode_and_check(data)


def test_broken_exif_is_ignored():
    data = pictures.encoded(pictures.scene(), "JPEG", exif=b"Exif\0\0" + SECRET)
    assert difference(reencode_and_check(data), open_image(data)) < 3


@pytest.mark.parametrize("trailer", [b"<script>alert(1)</script>", b"PK\x03\x04" + b"x" * 99])
@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP"])
def test_data_after_the_image_is_removed(format, trailer):
    data = pictures.encoded(pictures.scene("RGB"), format)
    assert trailer not in reencode(data + trailer).data
    reencode_and_check(data + trailer)


def test_html_in_a_comment_is_removed():
    data = bytearray(pictures.encoded(pictures.scene("P"), "GIF", comment=b"<html><script>"))
    assert b"<script>" not in reencode(bytes(data)).data


def test_only_the_first_image_of_an_mpo_is_kept():
    first, second = pictures.scene(), Image.new("RGB", (8, 8))
    data = pictures.encoded(first, "MPO", save_all=True, append_images=[second], quality=95)
    assert Image.open(BytesIO(data)).format == "MPO"
    result = reencode_and_check(data)
    assert result.format == "JPEG"
    assert difference(result, first) < 3


@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP"])
def test_one_pixel_is_accepted(format):
    assert reencode_and_check(pictures.encoded(Image.new("RGB", (1, 1)), format)).size == (1, 1)


def test_25_megapixels_are_accepted():
    data = pictures.encoded(Image.new("L", (5000, 5000)), "PNG")
    assert reencode(data).width == 5000


def test_metadata_does_not_make_a_webp_lossless():
    image = Image.effect_noise((64, 64), 80).convert("RGB")
    data = pictures.encoded(image, "WEBP", quality=20, xmp=b"VP8L" + SECRET)
    assert "VP8 " in part_names(reencode(data).data)


def test_a_large_lossless_webp_loses_little():
    image = pictures.scene("RGBA", size=(4000, 2500))
    result = open_image(reencode(pictures.encoded(image, "WEBP", lossless=True, method=0)).data)
    assert result.mode == "RGBA"
    for point in ((10, 10), (3990, 2490), (2000, 100)):
        pair = zip(result.getpixel(point), image.getpixel(point), strict=True)
        assert all(abs(one - two) <= 60 for one, two in pair)
