"""The image codec, called in this process: accepted files and their new encoding."""

import random
import struct
import zlib
from contextlib import suppress
from io import BytesIO

import pytest
from PIL import Image, ImageChops, ImageCms, ImageSequence, ImageStat

from posting.domain.imaging import ReencodedImage, codec
from posting.domain.imaging.codec import ImageError
from tests.helpers import hostile, pictures

MAX_BYTES = 5 * 2**20
SECRET = b"a secret comment"


def reencode(data, max_bytes=MAX_BYTES):
    described, encoded = codec.reencode(data, max_bytes=max_bytes)
    return ReencodedImage(data=encoded, **described)


def open_image(data):
    image = Image.open(BytesIO(data))
    image.load()
    return image


def part_names(data):
    """Return the names of the chunks, segments or blocks in a file."""
    readers = {"PNG": png_parts, "JPEG": jpeg_parts, "WEBP": webp_parts, "GIF": gif_parts}
    return readers[Image.open(BytesIO(data)).format](data)


def png_parts(data):
    offset, names = 8, []
    while offset < len(data):
        length, name = struct.unpack(">I4s", data[offset : offset + 8])
        names.append(name.decode())
        offset += 12 + length
    assert offset == len(data)
    return names


def jpeg_parts(data):
    offset, names = 2, []
    while data[offset + 1] != 0xDA:
        names.append(f"{data[offset + 1]:X}")
        offset += 2 + struct.unpack(">H", data[offset + 2 : offset + 4])[0]
    assert data.endswith(b"\xff\xd9")
    assert data.count(b"\xff\xd9") == 1
    return names


def webp_parts(data):
    offset, names = 12, []
    assert struct.unpack("<I", data[4:8])[0] + 8 == len(data)
    while offset < len(data):
        name, length = struct.unpack("<4sI", data[offset : offset + 8])
        names.append(name.decode())
        offset += 8 + length + length % 2
    return names


def gif_parts(data):
    def skip_blocks(offset):
        while data[offset]:
            offset += data[offset] + 1
        return offset + 1

    flags, offset, names = data[10], 13, []
    offset += 3 * 2 ** (flags % 8 + 1) if flags & 0x80 else 0
    while data[offset] != 0x3B:
        if data[offset] == 0x21:
            names.append(f"extension {data[offset + 1]:X}")
            offset = skip_blocks(offset + 2)
        else:
            flags = data[offset + 9]
            names.append("frame")
            offset += 10 + (3 * 2 ** (flags % 8 + 1) if flags & 0x80 else 0)
            offset = skip_blocks(offset + 1)
    assert offset == len(data) - 1
    return names


# The parts of a file without EXIF, XMP, ICC profile, texts and comments.
ALLOWED_PARTS = {
    "PNG": {"IHDR", "PLTE", "tRNS", "IDAT", "IEND", "acTL", "fcTL", "fdAT"},
    "JPEG": {"E0", "EE", "DB", "C0", "C4"},
    "WEBP": {"VP8 ", "VP8L", "VP8X", "ALPH", "ANIM", "ANMF"},
    "GIF": {"frame", "extension F9", "extension FF"},
}


def reencode_and_check(data):
    """Reencode an image, check that only allowed parts are left, and return the new image."""
    reencoded = reencode(data)
    image = open_image(reencoded.data)
    assert reencoded.media_type == Image.MIME[image.format]
    assert (reencoded.width, reencoded.height) == image.size
    assert set(part_names(reencoded.data)) <= ALLOWED_PARTS[image.format]
    assert SECRET not in reencoded.data
    assert not image.getexif()
    assert reencode(reencoded.data).media_type == reencoded.media_type
    return image


def difference(image, other):
    """Return the mean difference between the bytes of two images."""
    assert image.size == other.size
    pair = [each.convert("RGBA") for each in (image, other)]
    return sum(ImageStat.Stat(ImageChops.difference(*pair)).mean) / 4


def quantization(jpeg):
    """Return the quantization table of each component."""
    return [jpeg.quantization[table] for _, _, _, table in jpeg.layer]


class TestStillImages:
    @pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
    def test_a_png_keeps_its_mode_and_pixels(self, mode):
        image = pictures.scene("L" if mode == "I;16" else mode)
        if mode == "I;16":
            image = Image.frombytes(mode, (2, 1), b"\x01\x02\xfe\xff")
        result = reencode_and_check(pictures.encoded(image, "PNG"))
        assert result.mode == mode
        assert result.tobytes() == image.tobytes()

    def test_16_bit_channels_are_reduced_to_8(self):
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
    def test_a_transparent_color_stays_transparent(self, depth, kind, row, key):
        result = reencode_and_check(
            pictures.build_png((2, 1, depth, kind), b"\0" + row, (b"tRNS", key))
        )
        if depth == 16 and kind == 0:
            assert result.info["transparency"] == result.getpixel((1, 0)) != result.getpixel((0, 0))
        else:
            assert result.convert("RGBA").getchannel("A").tobytes() == b"\xff\0"

    @pytest.mark.parametrize("format", ["PNG", "GIF"])
    def test_a_palette_keeps_its_transparency(self, format):
        image = pictures.scene("RGB").quantize(8)
        data = pictures.encoded(image, format, transparency=image.getpixel((20, 20)))
        result = reencode_and_check(data)
        assert result.convert("RGBA").getpixel((20, 20))[3] == 0
        assert difference(result, open_image(data)) == 0

    @pytest.mark.parametrize("mode", ["RGB", "RGBA"])
    @pytest.mark.parametrize("lossless", [True, False])
    def test_a_webp_keeps_its_appearance(self, mode, lossless):
        data = pictures.encoded(pictures.scene(mode), "WEBP", lossless=lossless)
        result = reencode_and_check(data)
        assert result.mode == mode
        assert difference(result, open_image(data)) <= (0 if lossless else 3)

    @pytest.mark.parametrize("quality", [30, 75, 95])
    @pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:0"])
    def test_a_jpeg_keeps_its_quality_and_size(self, quality, subsampling):
        data = pictures.encoded(
            pictures.scene(size=(96, 64)), "JPEG", quality=quality, subsampling=subsampling
        )
        result = reencode_and_check(data)
        assert quantization(result) == quantization(open_image(data))
        assert difference(result, open_image(data)) < 1
        assert len(reencode(data).data) < 1.2 * len(data)

    def test_jpeg_tables_may_have_any_number(self):
        for mode in ("RGB", "L"):
            plain = pictures.encoded(pictures.scene(mode, (96, 64)), "JPEG", quality=60)
            result = reencode_and_check(pictures.swap_quantization_tables(plain))
            assert quantization(result) == quantization(open_image(plain))
            assert difference(result, open_image(plain)) < 1

    def test_a_grayscale_jpeg_stays_grayscale(self):
        assert reencode_and_check(pictures.encoded(pictures.scene("L"), "JPEG")).mode == "L"

    def test_a_cmyk_jpeg_becomes_rgb(self):
        data = pictures.encoded(pictures.scene("RGB").convert("CMYK"), "JPEG", quality=95)
        result = reencode_and_check(data)
        assert result.mode == "RGB"
        assert difference(result, pictures.scene("RGB")) < 3

    @pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
    def test_srgb_and_unusable_profiles_do_not_change_colors(self, format):
        lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
        srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        for profile in (srgb, lab, b"no profile", b"\0" * 200):
            data = pictures.encoded(pictures.scene(), format, icc_profile=profile)
            result = reencode_and_check(data)
            assert "icc_profile" not in result.info
            assert difference(result, open_image(data)) < 3

    @pytest.mark.parametrize("mode", ["RGB", "RGBA", "P"])
    def test_other_color_spaces_are_converted_to_srgb(self, mode):
        green = Image.new("RGB", (8, 8), (0, 255, 0)).convert(mode)
        data = pictures.encoded(green, "PNG", icc_profile=pictures.swapped_profile())
        red, green, _ = reencode_and_check(data).convert("RGB").getpixel((0, 0))
        assert red > 250
        assert green < 5

    def test_converting_colors_keeps_the_palette(self):
        """Otherwise the image would become three times as large."""
        image = pictures.scene("RGB", (64, 64)).quantize(16)
        profile = pictures.swapped_profile()
        data = pictures.encoded(image, "PNG", icc_profile=profile, transparency=0)
        result = reencode_and_check(data)
        assert (result.mode, result.info["transparency"]) == ("P", 0)
        assert result.tobytes() == open_image(data).tobytes()
        assert difference(result, open_image(data)) > 3

    def test_converting_colors_keeps_transparency(self):
        profile = b"a name\0\0" + zlib.compress(pictures.swapped_profile())
        chunks = ((b"iCCP", profile), (b"tRNS", b"\0\1\0\2\0\3"))
        data = pictures.build_png((2, 1, 8, 2), b"\0\1\2\3\0\xff\0", *chunks)
        result = reencode_and_check(data)
        assert result.getpixel((0, 0))[3] == 0
        assert result.getpixel((1, 0))[0] > 250

    @pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_an_image_is_turned_upright_and_loses_its_exif(self, format, orientation):
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

    def test_texts_and_comments_are_removed(self):
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

    def test_broken_exif_is_ignored(self):
        data = pictures.encoded(pictures.scene(), "JPEG", exif=b"Exif\0\0" + SECRET)
        assert difference(reencode_and_check(data), open_image(data)) < 3

    @pytest.mark.parametrize("trailer", [b"<script>alert(1)</script>", b"PK\x03\x04" + b"x" * 99])
    @pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP"])
    def test_data_after_the_image_is_removed(self, format, trailer):
        data = pictures.encoded(pictures.scene("RGB"), format)
        assert trailer not in reencode(data + trailer).data
        reencode_and_check(data + trailer)

    def test_html_in_a_comment_is_removed(self):
        data = bytearray(pictures.encoded(pictures.scene("P"), "GIF", comment=b"<html><script>"))
        assert b"<script>" not in reencode(bytes(data)).data

    def test_only_the_first_image_of_an_mpo_is_kept(self):
        first, second = pictures.scene(), Image.new("RGB", (8, 8))
        data = pictures.encoded(first, "MPO", save_all=True, append_images=[second], quality=95)
        assert Image.open(BytesIO(data)).format == "MPO"
        result = reencode_and_check(data)
        assert result.format == "JPEG"
        assert difference(result, first) < 3

    @pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP"])
    def test_one_pixel_is_accepted(self, format):
        assert reencode_and_check(pictures.encoded(Image.new("RGB", (1, 1)), format)).size == (1, 1)

    def test_25_megapixels_are_accepted(self):
        data = pictures.encoded(Image.new("L", (5000, 5000)), "PNG")
        assert reencode(data).width == 5000

    def test_metadata_does_not_make_a_webp_lossless(self):
        image = Image.effect_noise((64, 64), 80).convert("RGB")
        data = pictures.encoded(image, "WEBP", quality=20, xmp=b"VP8L" + SECRET)
        assert "VP8 " in part_names(reencode(data).data)

    def test_a_large_lossless_webp_loses_little(self):
        image = pictures.scene("RGBA", size=(4000, 2500))
        result = open_image(reencode(pictures.encoded(image, "WEBP", lossless=True, method=0)).data)
        assert result.mode == "RGBA"
        for point in ((10, 10), (3990, 2490), (2000, 100)):
            pair = zip(result.getpixel(point), image.getpixel(point), strict=True)
            assert all(abs(one - two) <= 60 for one, two in pair)


class TestAnimations:
    @pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP"])
    @pytest.mark.parametrize("mode", ["P", "RGBA"])
    def test_frames_and_durations_are_kept(self, format, mode):
        data = pictures.animation(
            format, mode=mode, **({"lossless": True} if format == "WEBP" else {})
        )
        before, after = Image.open(BytesIO(data)), reencode_and_check(data)
        assert after.n_frames == before.n_frames == 5
        assert after.info["loop"] == before.info["loop"] == 3
        for one, two in zip(
            ImageSequence.Iterator(before), ImageSequence.Iterator(after), strict=True
        ):
            one.load()
            two.load()
            assert one.info["duration"] == two.info["duration"]
            assert difference(one, two) <= (3 if format == "WEBP" else 0)

    def test_a_gif_that_plays_once_still_plays_once(self):
        first, *rest = pictures.frames(3)
        data = pictures.encoded(first, "GIF", save_all=True, append_images=rest)
        assert "loop" not in reencode_and_check(data).info

    def test_a_gif_still_clears_its_frames(self):
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

    def test_a_gif_of_small_changes_stays_small(self):
        """Even if a part of it is transparent, such as its corner here."""
        background = Image.effect_noise((320, 240), 60).convert("RGBA")
        frames = []
        for number in range(20):
            frame = background.copy()
            frame.paste((0, 0, 0, 0), (0, 0, 40, 40))
            frame.paste((200, 0, 0, 255), (number * 8, 100, number * 8 + 8, 108))
            frames.append(frame)
        data = pictures.encoded(
            frames[0], "GIF", save_all=True, append_images=frames[1:], duration=50
        )
        after = reencode_and_check(data)
        for one, two in zip(
            ImageSequence.Iterator(open_image(data)), ImageSequence.Iterator(after), strict=True
        ):
            assert difference(one, two) == 0
        assert len(reencode(data).data) < 1.2 * len(data)

    @pytest.mark.parametrize("seed", range(8))
    def test_random_gifs_keep_their_transparency(self, seed):
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

    def test_an_apng_keeps_its_default_image(self):
        first, *rest = pictures.frames(4, "RGB")
        data = pictures.encoded(
            first, "PNG", save_all=True, default_image=True, append_images=rest, duration=100
        )
        before, after = open_image(data), reencode_and_check(data)
        assert before.info["default_image"]
        assert after.info["default_image"]
        assert after.n_frames == before.n_frames == 4

    def test_metadata_is_removed(self):
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
    def test_frames_and_pixels_are_limited(self, count, size):
        frames = [Image.new("L", size, number % 2 * 255) for number in range(count)]
        data = pictures.encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
        with pytest.raises(ImageError, match="An animation must"):
            reencode(data)


class TestRefusals:
    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"", "Must be a PNG"),
            (b"x", "Must be a PNG"),
            (b"\x89PNG\r\n\x1a\n", "Must be a PNG"),
            (b"GIF89a", "Must be a PNG"),
            (b"\xff\xd8\xff", "Must be a PNG"),
            (b"RIFF\x04\0\0\0WEBP", "Must be a PNG"),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "Must be a PNG"),
            (b"<html><script>alert(1)</script></html>", "Must be a PNG"),
            (b"%PDF-1.7", "Must be a PNG"),
            (pictures.encoded(pictures.scene(), "BMP"), "Must be a PNG"),
            (pictures.encoded(pictures.scene(), "TIFF"), "Must be a PNG"),
            (pictures.encoded(pictures.scene(), "ICO"), "Must be a PNG"),
            (pictures.encoded(pictures.scene(), "EPS"), "Must be a PNG"),
            (pictures.encoded(pictures.scene(), "AVIF"), "Must be a PNG"),
            (pictures.png_bomb(25_000_001, 1), "25,000,000 pixels"),
            (pictures.png_bomb(50_000, 50_000), "25,000,000 pixels"),
            (pictures.png_bomb(2**31 - 1, 2**31 - 1), "25,000,000 pixels"),
            (pictures.gif_bomb(65_535, 65_535), "25,000,000 pixels"),
            (pictures.growing_gif(5000), "larger than the image"),
            (pictures.png_bomb(5000, 5000), "damaged"),
            (pictures.png_bomb(0, 5), "Must be a PNG"),
        ],
        ids=range(21),
    )
    def test_other_files_and_bombs_are_refused(self, data, reason):
        with pytest.raises(ImageError, match=reason):
            reencode(data)

    @pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP"])
    @pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
    def test_truncated_images_are_refused(self, format, share):
        image = Image.effect_noise((64, 64), 80).convert("RGB")
        data = pictures.encoded(image, format)
        with pytest.raises(ImageError, match=r"damaged|Must be a PNG"):
            reencode(data[: int(len(data) * share)])

    def test_a_compressed_text_bomb_is_refused(self):
        bomb = zlib.compress(b"x" * 10**8)
        chunk = pictures.png_chunk(b"zTXt", b"name\0\0" + bomb)
        plain = pictures.png()
        with pytest.raises(ImageError):
            reencode(plain[:33] + chunk + plain[33:])

    @pytest.mark.parametrize(
        ("format", "part"),
        [
            (
                "JPEG",
                b"\xff\xe1\0\x20Exif\0\0" + b"x" * 24,
            ),  # Pillow concatenates them again for each
            ("JPEG", b"\xff\xda\0\x0c\3\1\0\2\x11\3\x11\0\x3f\0"),  # each is a pass over the image
            ("PNG", pictures.png_chunk(b"iCCP", b"x\0\0" + zlib.compress(b"\0" * (2**20 - 1)))),
        ],
        ids=["EXIF", "scans", "profiles"],
    )
    def test_too_many_segments_are_refused_before_decoding(self, format, part):
        data = pictures.encoded(pictures.scene(), format)
        offset = 2 if format == "JPEG" else 33
        with pytest.raises(ImageError, match="too many segments"):
            reencode(data[:offset] + part * (2**20 // len(part)) + data[offset:])

    def test_texts_that_are_too_long_in_total_are_refused(self):
        text = zlib.compress(("\N{GRINNING FACE}" + "a" * (2**20 - 10)).encode())
        chunk = pictures.png_chunk(b"iTXt", b"name\0\1\0\0\0" + text)
        plain = pictures.png()
        assert reencode(plain[:33] + chunk + plain[33:])
        with pytest.raises(ImageError):
            reencode(plain[:33] + chunk * 5 + plain[33:])

    @pytest.mark.parametrize("size", [(16_385, 1), (1, 16_385)])
    @pytest.mark.parametrize("format", ["PNG", "GIF"])
    def test_sides_are_limited(self, format, size):
        with pytest.raises(ImageError, match="16,384 pixels wide and high"):
            reencode(pictures.encoded(Image.new("L", size), format))
        longest = min(size), max(size) - 1
        assert reencode(pictures.encoded(Image.new("L", longest), format)).height == 16_384

    @pytest.mark.parametrize("tag", [b"D2B0", b"D2B3", b"B2D1"])
    @pytest.mark.parametrize(
        "add_profile", [hostile.png_with_profile, hostile.jpeg_with_profile], ids=["PNG", "JPEG"]
    )
    def test_profiles_with_processing_elements_are_dropped(self, add_profile, tag, monkeypatch):
        """The color engine would process each overlapping stage: minutes for kilobytes."""
        monkeypatch.delattr(ImageCms, "profileToProfile")
        data = add_profile(hostile.expensive_profile(3, tag))
        assert difference(reencode_and_check(data), open_image(data)) < 3

    def test_segments_are_not_counted_in_a_webp(self):
        """The marker bytes of another format can occur in it by chance."""
        frame = Image.frombytes("RGB", (16, 16), random.Random(1).randbytes(768))
        data = pictures.encoded(frame, "WEBP", lossless=True, xmp=b"\xff\xda" * 501)
        assert reencode(data).media_type == "image/webp"


class TestSize:
    """The new encoding has a size limit."""

    @pytest.mark.parametrize(
        ("format", "options"),
        [
            ("PNG", {"optimize": True}),
            ("JPEG", {"optimize": True, "progressive": True, "quality": 90}),
            ("WEBP", {"lossless": True}),
        ],
    )
    def test_a_result_that_is_too_large_is_encoded_smaller(self, format, options):
        image = pictures.scene(size=(300, 300))
        image.paste(Image.effect_noise((200, 200), 40))
        data = pictures.encoded(image, format, **options)
        max_bytes = min(len(data), len(reencode(data).data) - 1)
        assert len(reencode(data, max_bytes).data) <= max_bytes

    @pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP"])
    def test_a_result_that_stays_too_large_is_refused(self, format):
        data = pictures.encoded(pictures.scene(), format)
        with pytest.raises(ImageError, match="more than 50 bytes"):
            reencode(data, max_bytes=50)


class TestCorruptFiles:
    @pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP"])
    def test_corrupt_bytes_raise_nothing_else(self, format):
        """A file with a changed byte either gives an image or an ImageError."""
        data = pictures.animation(format) if format != "JPEG" else pictures.encoded(
            pictures.scene(), format, exif=pictures.exif())  # fmt: skip
        for offset in range(0, len(data), max(1, len(data) // 150)):
            for value in (0x00, 0xFF, data[offset] ^ 0x55):
                broken = bytearray(data)
                broken[offset] = value
                with suppress(ImageError):
                    reencode(bytes(broken))
