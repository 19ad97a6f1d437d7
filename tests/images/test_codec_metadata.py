"""The image codec, called in this process: parts of files that no browser needs, and colors."""

import io
import random
import struct
import zlib
from contextlib import suppress

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from posting.images.codec import child
from posting.images.codec.child import ImageError
from tests.helpers import pictures
from tests.helpers.image_files import SECRET, difference, open_image, reencode, reencode_and_check

ROTATED = (
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    b'<rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="6"/></rdf:RDF>'
)
TEXTS = {
    b"tEXt": b"Comment\0" + SECRET,
    b"zTXt": b"Comment\0\0" + zlib.compress(SECRET),
    b"iTXt": b"Comment\0\0\0\0\0" + SECRET,
}
SRGB_PRIMARIES = (31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)
GREEN_OF_ADOBE_RGB = (31270, 32900, 64000, 33000, 21000, 71000, 15000, 6000)


def with_chunk(name, content, *, times=1, is_damaged=False, before_image=True, data=None):
    """Return a PNG with one more chunk, perhaps with a wrong checksum."""
    data = data or pictures.png()
    chunk = pictures.png_chunk(name, content)
    if is_damaged:
        chunk = chunk[:-1] + bytes([chunk[-1] ^ 1])
    place = 33 if before_image else len(data) - 12
    return data[:place] + chunk * times + data[place:]


def with_segment(kind, content, data=None):
    """Return a JPEG with one more segment at its beginning."""
    data = data or pictures.encoded(pictures.scene(), "JPEG", quality=95)
    return data[:2] + struct.pack(">BBH", 0xFF, kind, 2 + len(content)) + content + data[2:]


def assert_shows_the_scene(data):
    image = reencode_and_check(data)
    assert difference(image, pictures.scene()) < 3
    return image


class TestPng:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            *TEXTS.items(),
            (b"tIME", bytes(7)),
            (b"pHYs", bytes(9)),
            (b"bKGD", bytes(6)),
            (b"eXIf", pictures.exif(6).tobytes()[6:]),
            (b"gAMA", struct.pack(">I", 100_000)),
            (b"cHRM", struct.pack(">8I", *GREEN_OF_ADOBE_RGB)),
            (b"iCCP", b"x\0\0" + zlib.compress(pictures.swapped_profile())),
            (b"sRGB", b"\0"),
            (b"tRNS", bytes([0, 240] * 3)),
            (b"vpAg", b"of another program"),
        ],
    )
    @pytest.mark.parametrize("before_image", [True, False])
    def test_a_wrong_checksum_of_an_optional_chunk_does_no_harm(self, name, content, before_image):
        data = with_chunk(name, content, is_damaged=True, before_image=before_image)
        assert assert_shows_the_scene(data).mode == "RGB"

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            (b"gAMA", b""),
            (b"gAMA", bytes(4)),
            (b"cHRM", b"\0"),
            (b"cHRM", bytes(32)),
            (b"sRGB", b""),
            (b"tRNS", b"\0"),
            (b"iCCP", b"x\0\7" + zlib.compress(pictures.swapped_profile())),
            (b"iCCP", b"x\0\0no profile"),
            (b"iCCP", b"x\0\0" + zlib.compress(pictures.swapped_profile())[:-20]),
            (b"iCCP", b"x\0\0" + zlib.compress(bytes(5 * 2**20))),
            (b"iCCP", b""),
            (b"eXIf", SECRET),
            (b"pHYs", b"\0"),
            (b"tEXt", b""),
            (b"zTXt", b"x\0\7"),
            (b"iTXt", b"\xff\0\1\1"),
        ],
    )
    def test_an_invalid_optional_chunk_does_no_harm(self, name, content):
        assert assert_shows_the_scene(with_chunk(name, content)).mode == "RGB"

    def test_a_text_that_ends_early_after_the_image_does_no_harm(self):
        data = with_chunk(b"tEXt", b"x\0" + bytes(999), before_image=False)
        assert_shows_the_scene(data[:-500])

    @pytest.mark.parametrize("name", TEXTS)
    def test_a_text_may_have_any_length(self, name):
        text = bytes(10**8)
        content = {
            b"tEXt": b"Comment\0" + text[: 4 * 2**20],
            b"zTXt": b"Comment\0\0" + zlib.compress(text),
            b"iTXt": b"Comment\0\1\0\0\0" + zlib.compress(text),
        }[name]
        assert_shows_the_scene(with_chunk(name, content))
        assert_shows_the_scene(with_chunk(name, TEXTS[name], times=10_000))

    def test_many_profiles_are_read_once(self):
        profile = zlib.compress(bytes(4 * 2**20 - 1))
        assert_shows_the_scene(with_chunk(b"iCCP", b"x\0\0" + profile, times=1000))

    def test_many_profiles_that_end_early_are_read_once(self, monkeypatch):
        tries = []
        new = zlib.decompressobj
        monkeypatch.setattr(child.zlib, "decompressobj", lambda: tries.append(1) or new())
        profile = zlib.compress(bytes(4 * 2**20))[:300]
        assert_shows_the_scene(with_chunk(b"iCCP", b"x\0\0" + profile, times=3000))
        assert len(tries) == 1

    @pytest.mark.parametrize("name", [b"IHDR", b"PLTE", b"IDAT"])
    def test_a_wrong_checksum_of_the_image_is_refused(self, name):
        data = bytearray(pictures.encoded(pictures.scene("P"), "PNG"))
        data[data.index(name) + 5] ^= 1
        with pytest.raises(ImageError):
            reencode(bytes(data))

    @pytest.mark.parametrize("name", [b"acTL", b"fcTL", b"fdAT"])
    def test_an_animation_with_a_wrong_checksum_does_not_become_a_still_image(self, name):
        data = bytearray(pictures.animation("PNG"))
        place = data.index(name)
        size = int.from_bytes(data[place - 4 : place])
        data[place + 4 + size] ^= 1
        with suppress(ImageError):
            assert reencode_and_check(bytes(data)).n_frames == 5

    def test_an_animation_keeps_its_frames_without_damaged_chunks(self):
        data = with_chunk(b"tEXt", b"x\0y", is_damaged=True, data=pictures.animation("PNG"))
        assert reencode_and_check(data).n_frames == 5


class TestJpeg:
    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"Exif\0\0",
            b"Exif\0\0" + SECRET,
            b"JFIF\0",
            b"Adobe",
            b"ICC_PROFILE\0",
            b"ICC_PROFILE\0\1\1no profile",
            b"http://ns.adobe.com/xap/1.0/\0" + SECRET,
            b"Photoshop 3.0\x008BIM\4\4\0\0\0\0\xff\xff",
            b"MPF\0" + SECRET,
            b"MPF\0II*\0\x08\0\0\0\xff\xff",
        ],
    )
    @pytest.mark.parametrize("kind", [0xE0, 0xE1, 0xE2, 0xED, 0xEE, 0xEF, 0xFE])
    def test_invalid_metadata_does_no_harm(self, kind, content):
        assert_shows_the_scene(with_segment(kind, content))

    @pytest.mark.parametrize("size", [b"\0\0", b"\0\1", b"\0\4"])
    def test_metadata_with_a_wrong_size_does_no_harm(self, size):
        plain = pictures.encoded(pictures.scene(), "JPEG", quality=95)
        segment = b"\xff\xe1" + size + b"Exif\0\0 more"
        assert_shows_the_scene(plain[:2] + segment + plain[2:])

    def test_of_many_exif_segments_the_first_counts(self):
        """Pillow would concatenate them, which takes long."""
        size, exif = (32, 48), pictures.exif(6).tobytes()
        data = pictures.encoded(pictures.scene(size=size), "JPEG")
        data = with_segment(0xE1, b"Exif\0\0 more", data=data)
        data = with_segment(0xE1, exif, data=data)
        assert reencode_and_check(data).size == (48, 32)


def test_invalid_metadata_of_a_webp_does_no_harm():
    for options in ({"exif": SECRET}, {"exif": b"Exif\0\0" + SECRET}, {"xmp": SECRET}):
        assert_shows_the_scene(pictures.encoded(pictures.scene(), "WEBP", quality=95, **options))


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP"])
def test_an_orientation_outside_of_exif_is_ignored_as_in_browsers(format):
    texts = PngInfo()
    texts.add_itxt("XML:com.adobe.xmp", ROTATED.decode())
    exif = pictures.exif(6).tobytes()
    texts.add_text("Raw profile type exif", f"\nexif\n{len(exif):8}\n{exif.hex()}\n")
    options = {"pnginfo": texts} if format == "PNG" else {"xmp": ROTATED, "quality": 95}
    data = pictures.encoded(pictures.scene(), format, **options)
    assert Image.open(io.BytesIO(data)).getexif().get(pictures.ORIENTATION) == 6
    assert_shows_the_scene(data)


class TestColors:
    """The expected shades are those of Chromium 156."""

    def shades(self, kind, *chunks, depth=8):
        """Return an image that has the shade 64, or a color, in the middle of three pixels."""
        samples = {
            0: b"\0\x40\xff" if depth == 8 else b"\0\0\x40\x40\xff\xff",
            2: b"\0\0\0\x40\xbf\xc0\xff\xff\xff",
            3: b"\0\1\2",
            4: b"\0\xff\x40\xc8\xff\xff",
            6: b"\0\0\0\xff\x40\xbf\xc0\xff\xff\xff\xff\xff",
        }[kind]
        palette = [(b"PLTE", b"\0\0\0\x40\xbf\xc0\xff\xff\xff")] if kind == 3 else []
        return pictures.build_png((3, 1, depth, kind), b"\0" + samples, *chunks, *palette)

    @pytest.mark.parametrize(
        ("gamma", "shade", "color"),
        [(1.0, 137, (137, 224, 225)), (0.55556, 81, (81, 203, 203)), (0.45455, 64, (64, 191, 192))],
    )
    def test_the_gamma_of_a_png_is_converted(self, gamma, shade, color):
        chunk = (b"gAMA", struct.pack(">I", round(gamma * 100_000)))
        for kind, depth in ((0, 8), (0, 16), (4, 8)):
            image = reencode_and_check(self.shades(kind, chunk, depth=depth))
            if image.mode == "I;16":  # it needs no conversion
                image = image.point(lambda level: level / 256).convert("L")
            pixels = [image.convert("LA").getpixel((x, 0)) for x in range(3)]
            assert [level for level, _ in pixels] == [0, pytest.approx(shade, abs=1), 255]
            assert pixels[1][1] == (200 if kind == 4 else 255)
        for kind in (2, 3, 6):
            pixel = reencode_and_check(self.shades(kind, chunk)).convert("RGB").getpixel((1, 0))
            assert all(abs(one - two) <= 1 for one, two in zip(pixel, color, strict=True))

    @pytest.mark.parametrize(
        ("chunks", "color"),
        [
            ({b"gAMA": (45_455,), b"cHRM": SRGB_PRIMARIES}, (62, 192, 193)),
            ({b"gAMA": (45_455,), b"cHRM": GREEN_OF_ADOBE_RGB}, (0, 192, 193)),
            ({b"gAMA": (100_000,), b"cHRM": SRGB_PRIMARIES}, (137, 224, 225)),
            ({b"cHRM": GREEN_OF_ADOBE_RGB}, (64, 191, 192)),
            ({b"gAMA": (0,), b"cHRM": SRGB_PRIMARIES}, (64, 191, 192)),
            ({b"gAMA": (45_455,), b"cHRM": (0,) * 8}, (64, 191, 192)),
            ({b"gAMA": (45_455,), b"cHRM": (2**32 - 1,) * 8}, (64, 191, 192)),
        ],
    )
    def test_the_primaries_of_a_png_are_converted(self, chunks, color):
        parts = [(name, struct.pack(f">{len(v)}I", *v)) for name, v in chunks.items()]
        pixel = reencode_and_check(self.shades(2, *parts)).getpixel((1, 0))
        assert all(abs(one - two) <= 1 for one, two in zip(pixel, color, strict=True))

    @pytest.mark.parametrize("seed", range(20))
    def test_any_gamma_and_primaries_are_accepted(self, seed):
        rng = random.Random(seed)
        numbers = [rng.choice([0, 1, 2, 3, 33_000, 2**31, 2**32 - 1]) for _ in range(9)]
        parts = struct.pack(">I", numbers[0]), struct.pack(">8I", *numbers[1:])
        for kind in (0, 2, 3):
            chunks = zip((b"gAMA", b"cHRM"), parts, strict=True)
            assert reencode_and_check(self.shades(kind, *chunks)).width == 3

    def test_srgb_and_a_profile_go_before_the_gamma(self):
        gamma = (b"gAMA", struct.pack(">I", 100_000))
        image = reencode_and_check(self.shades(2, (b"sRGB", b"\0"), gamma))
        assert image.getpixel((1, 0)) == (64, 191, 192)
        profile = (b"iCCP", b"x\0\0" + zlib.compress(pictures.gray_profile(1.8)))
        assert reencode_and_check(self.shades(0, profile, gamma)).getpixel((1, 0)) == 81

    @pytest.mark.parametrize("kind", [0, 4])
    @pytest.mark.parametrize(("gamma", "shade"), [(1.8, 81), (1.0, 137)])
    def test_a_gray_png_with_a_profile_is_converted_and_stays_gray(self, kind, gamma, shade):
        profile = (b"iCCP", b"x\0\0" + zlib.compress(pictures.gray_profile(gamma)))
        image = reencode_and_check(self.shades(kind, profile))
        assert image.mode == ("L" if kind == 0 else "LA")
        level, opacity = image.convert("LA").getpixel((1, 0))
        assert (level, opacity) == (shade, 200 if kind == 4 else 255)

    def test_a_gray_png_of_16_bits_with_a_profile_is_converted(self):
        profile = (b"iCCP", b"x\0\0" + zlib.compress(pictures.gray_profile(1.0)))
        image = reencode_and_check(self.shades(0, profile, depth=16))
        assert (image.mode, image.getpixel((1, 0))) == ("L", 137)

    @pytest.mark.parametrize(("depth", "key"), [(8, b"\0\x40"), (16, b"\x40\x40")])
    def test_only_the_transparent_shade_stays_transparent(self, depth, key):
        gamma = (b"gAMA", struct.pack(">I", 1_000_000))  # 64 and 255 become nearly the same
        image = reencode_and_check(self.shades(0, gamma, (b"tRNS", key), depth=depth))
        assert image.mode == "LA"
        assert image.getchannel("A").tobytes() == b"\xff\0\xff"

    def test_a_gray_jpeg_with_a_profile_is_converted(self):
        flat = Image.new("L", (16, 16), 64)
        for profile in (pictures.gray_profile(1.8), pictures.rgb_profile(1.8)):
            data = pictures.encoded(flat, "JPEG", quality=95, icc_profile=profile)
            image = reencode_and_check(data)
            assert (image.mode, image.getpixel((8, 8))) == ("L", 81)

    def test_a_profile_of_another_kind_of_image_is_ignored(self):
        data = pictures.encoded(pictures.scene(), "PNG", icc_profile=pictures.gray_profile(1.8))
        assert difference(reencode_and_check(data), open_image(data)) == 0
