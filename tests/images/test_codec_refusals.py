"""The image codec, called in this process: files that it refuses, and its limits."""

import random
from contextlib import suppress

import pytest
from PIL import Image, ImageCms

from posting.images.codec.child import ImageError
from tests.helpers import hostile, pictures
from tests.helpers.image_files import difference, open_image, reencode, reencode_and_check


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

    @pytest.mark.parametrize("count", [33, 498])
    def test_a_jpeg_with_too_many_scans_is_refused_before_decoding(self, count, monkeypatch):
        monkeypatch.delattr(Image, "open")
        with pytest.raises(ImageError, match="at most 32 scans"):
            reencode(hostile.many_scans(count))

    def test_a_jpeg_with_as_many_scans_as_encoders_write_is_accepted(self):
        assert reencode(hostile.many_scans(22)).width == 2000  # and the ten of a progressive JPEG

    @pytest.mark.parametrize(
        "segment",
        [b"\xff\xe1\1\xf6Exif\0\0", b"\xff\xe2\1\xf6ICC_PROFILE\0\1\1", b"\xff\xfe\1\xf6"],
    )
    def test_only_scans_of_the_image_count(self, segment):
        """A preview in the metadata and a video after the image may contain the same bytes."""
        plain = pictures.encoded(pictures.scene(), "JPEG")
        marker = b"\xff\xda"
        data = plain[:2] + segment.ljust(504, b"x")[:404] + marker * 50 + plain[2:] + marker * 500
        assert difference(reencode_and_check(data), open_image(plain)) < 3

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
