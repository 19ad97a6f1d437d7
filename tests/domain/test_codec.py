"""The image codec, in this process: which files are taken, and what is left of them."""

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


def opened(data):
    image = Image.open(BytesIO(data))
    image.load()
    return image


def parts(data):
    """Return the names of the chunks, segments or blocks of which a file is made."""
    form = Image.open(BytesIO(data)).format
    return {"PNG": png_parts, "JPEG": jpeg_parts, "WEBP": webp_parts, "GIF": gif_parts}[form](data)


def png_parts(data):
    place, found = 8, []
    while place < len(data):
        length, name = struct.unpack(">I4s", data[place : place + 8])
        found.append(name.decode())
        place += 12 + length
    assert place == len(data)
    return found


def jpeg_parts(data):
    place, found = 2, []
    while data[place + 1] != 0xDA:
        found.append(f"{data[place + 1]:X}")
        place += 2 + struct.unpack(">H", data[place + 2 : place + 4])[0]
    assert data.endswith(b"\xff\xd9")
    assert data.count(b"\xff\xd9") == 1
    return found


def webp_parts(data):
    place, found = 12, []
    assert struct.unpack("<I", data[4:8])[0] + 8 == len(data)
    while place < len(data):
        name, length = struct.unpack("<4sI", data[place : place + 8])
        found.append(name.decode())
        place += 8 + length + length % 2
    return found


def gif_parts(data):
    def skip_blocks(place):
        while data[place]:
            place += data[place] + 1
        return place + 1

    flags, place, found = data[10], 13, []
    place += 3 * 2 ** (flags % 8 + 1) if flags & 0x80 else 0
    while data[place] != 0x3B:
        if data[place] == 0x21:
            found.append(f"extension {data[place + 1]:X}")
            place = skip_blocks(place + 2)
        else:
            flags = data[place + 9]
            found.append("frame")
            place += 10 + (3 * 2 ** (flags % 8 + 1) if flags & 0x80 else 0)
            place = skip_blocks(place + 1)
    assert place == len(data) - 1
    return found


# All that a clean file may be made of: no EXIF, XMP, ICC profiles, texts or comments.
NEEDED = {
    "PNG": {"IHDR", "PLTE", "tRNS", "IDAT", "IEND", "acTL", "fcTL", "fdAT"},
    "JPEG": {"E0", "EE", "DB", "C0", "C4"},
    "WEBP": {"VP8 ", "VP8L", "VP8X", "ALPH", "ANIM", "ANMF"},
    "GIF": {"frame", "extension F9", "extension FF"},
}


def reencoded(data):
    """Encode again, and assert that nothing is left that need not be; return the new image."""
    picture = reencode(data)
    image = opened(picture.data)
    assert picture.media_type == Image.MIME[image.format]
    assert (picture.width, picture.height) == image.size
    assert set(parts(picture.data)) <= NEEDED[image.format]
    assert SECRET not in picture.data
    assert not image.getexif()
    assert reencode(picture.data).media_type == picture.media_type
    return image


def difference(image, other):
    """Return by how much two pictures differ, as the mean of their bytes' differences."""
    assert image.size == other.size
    pair = [picture.convert("RGBA") for picture in (image, other)]
    return sum(ImageStat.Stat(ImageChops.difference(*pair)).mean) / 4


def quantization(jpeg):
    """Return the table of each component."""
    return [jpeg.quantization[table] for _, _, _, table in jpeg.layer]


class TestStills:
    @pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
    def test_a_png_of_any_kind_stays_what_it_is(self, mode):
        image = pictures.scene("L" if mode == "I;16" else mode)
        if mode == "I;16":
            image = Image.frombytes(mode, (2, 1), b"\x01\x02\xfe\xff")
        came = reencoded(pictures.encoded(image, "PNG"))
        assert came.mode == mode
        assert came.tobytes() == image.tobytes()

    def test_a_png_of_16_bits_a_colour_comes_out_with_8(self):
        data = pictures.png_of((1, 1, 16, 2), b"\0\x12\x34\x56\x78\x9a\xbc")
        assert reencoded(data).tobytes() == b"\x12\x56\x9a"

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
    def test_the_colour_that_is_transparent_stays_so(self, depth, kind, row, key):
        came = reencoded(pictures.png_of((2, 1, depth, kind), b"\0" + row, (b"tRNS", key)))
        if depth == 16 and kind == 0:
            assert came.info["transparency"] == came.getpixel((1, 0)) != came.getpixel((0, 0))
        else:
            assert came.convert("RGBA").getchannel("A").tobytes() == b"\xff\0"

    @pytest.mark.parametrize("form", ["PNG", "GIF"])
    def test_a_palette_keeps_its_transparency(self, form):
        image = pictures.scene("RGB").quantize(8)
        data = pictures.encoded(image, form, transparency=image.getpixel((20, 20)))
        came = reencoded(data)
        assert came.convert("RGBA").getpixel((20, 20))[3] == 0
        assert difference(came, opened(data)) == 0

    @pytest.mark.parametrize("mode", ["RGB", "RGBA"])
    @pytest.mark.parametrize("lossless", [True, False])
    def test_a_webp_looks_as_it_did(self, mode, lossless):
        data = pictures.encoded(pictures.scene(mode), "WEBP", lossless=lossless)
        came = reencoded(data)
        assert came.mode == mode
        assert difference(came, opened(data)) <= (0 if lossless else 3)

    @pytest.mark.parametrize("quality", [30, 75, 95])
    @pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:0"])
    def test_a_jpeg_neither_fades_nor_grows(self, quality, subsampling):
        data = pictures.encoded(
            pictures.scene(size=(96, 64)), "JPEG", quality=quality, subsampling=subsampling
        )
        came = reencoded(data)
        assert quantization(came) == quantization(opened(data))
        assert difference(came, opened(data)) < 1
        assert len(reencode(data).data) < 1.2 * len(data)

    def test_the_tables_of_a_jpeg_may_have_any_number(self):
        for mode in ("RGB", "L"):
            plain = pictures.encoded(pictures.scene(mode, (96, 64)), "JPEG", quality=60)
            came = reencoded(pictures.renumbered(plain))
            assert quantization(came) == quantization(opened(plain))
            assert difference(came, opened(plain)) < 1

    def test_a_grey_jpeg_stays_grey(self):
        assert reencoded(pictures.encoded(pictures.scene("L"), "JPEG")).mode == "L"

    def test_a_cmyk_jpeg_becomes_what_browsers_show(self):
        data = pictures.encoded(pictures.scene("RGB").convert("CMYK"), "JPEG", quality=95)
        came = reencoded(data)
        assert came.mode == "RGB"
        assert difference(came, pictures.scene("RGB")) < 3

    @pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
    def test_colours_are_those_that_the_profile_meant(self, form):
        lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
        srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        for profile in (srgb, lab, b"no profile", b"\0" * 200):
            data = pictures.encoded(pictures.scene(), form, icc_profile=profile)
            came = reencoded(data)
            assert "icc_profile" not in came.info
            assert difference(came, opened(data)) < 3

    @pytest.mark.parametrize("mode", ["RGB", "RGBA", "P"])
    def test_colours_of_another_space_are_converted(self, mode):
        green = Image.new("RGB", (8, 8), (0, 255, 0)).convert(mode)
        data = pictures.encoded(green, "PNG", icc_profile=pictures.swapped_profile())
        red, green, _ = reencoded(data).convert("RGB").getpixel((0, 0))
        assert red > 250
        assert green < 5

    def test_a_palette_stays_one(self):
        """So that the image does not become three times as large."""
        image = pictures.scene("RGB", (64, 64)).quantize(16)
        profile = pictures.swapped_profile()
        data = pictures.encoded(image, "PNG", icc_profile=profile, transparency=0)
        came = reencoded(data)
        assert (came.mode, came.info["transparency"]) == ("P", 0)
        assert came.tobytes() == opened(data).tobytes()
        assert difference(came, opened(data)) > 3

    def test_they_are_and_what_is_transparent_stays_so(self):
        profile = b"a name\0\0" + zlib.compress(pictures.swapped_profile())
        chunks = ((b"iCCP", profile), (b"tRNS", b"\0\1\0\2\0\3"))
        data = pictures.png_of((2, 1, 8, 2), b"\0\1\2\3\0\xff\0", *chunks)
        came = reencoded(data)
        assert came.getpixel((0, 0))[3] == 0
        assert came.getpixel((1, 0))[0] > 250

    @pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_it_is_turned_upright_and_forgets_where_it_was_taken(self, form, orientation):
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
        data = pictures.encoded(turned, form, exif=exif, quality=95, lossless=True)
        assert SECRET in data
        came = reencoded(data)
        assert difference(came, upright) < 3
        assert sum(came.getpixel((2, 2))) < sum(came.getpixel((93, 2)))

    def test_texts_and_comments_go(self):
        for form, options in {
            "PNG": {"pnginfo": pictures.png_texts(SECRET.decode())},
            "JPEG": {"comment": SECRET, "xmp": SECRET},
            "GIF": {"comment": SECRET},
            "WEBP": {"xmp": SECRET},
        }.items():
            data = pictures.encoded(
                pictures.scene("P" if form == "GIF" else "RGB"), form, **options
            )
            assert SECRET in data
            reencoded(data)

    def test_exif_that_is_broken_turns_nothing(self):
        data = pictures.encoded(pictures.scene(), "JPEG", exif=b"Exif\0\0" + SECRET)
        assert difference(reencoded(data), opened(data)) < 3

    @pytest.mark.parametrize("behind", [b"<script>alert(1)</script>", b"PK\x03\x04" + b"x" * 99])
    @pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
    def test_what_is_behind_a_picture_goes(self, form, behind):
        data = pictures.encoded(pictures.scene("RGB"), form)
        assert behind not in reencode(data + behind).data
        reencoded(data + behind)

    def test_a_page_inside_a_picture_goes(self):
        data = bytearray(pictures.encoded(pictures.scene("P"), "GIF", comment=b"<html><script>"))
        assert b"<script>" not in reencode(bytes(data)).data

    def test_a_jpeg_with_more_pictures_behind_is_its_first(self):
        first, second = pictures.scene(), Image.new("RGB", (8, 8))
        data = pictures.encoded(first, "MPO", save_all=True, append_images=[second], quality=95)
        assert Image.open(BytesIO(data)).format == "MPO"
        came = reencoded(data)
        assert came.format == "JPEG"
        assert difference(came, first) < 3

    @pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
    def test_one_pixel_is_a_picture(self, form):
        assert reencoded(pictures.encoded(Image.new("RGB", (1, 1)), form)).size == (1, 1)

    def test_25_megapixels_are_taken(self):
        data = pictures.encoded(Image.new("L", (5000, 5000)), "PNG")
        assert reencode(data).width == 5000

    def test_what_is_written_in_a_webp_does_not_tell_how_it_is_encoded(self):
        image = Image.effect_noise((64, 64), 80).convert("RGB")
        data = pictures.encoded(image, "WEBP", quality=20, xmp=b"VP8L" + SECRET)
        assert "VP8 " in parts(reencode(data).data)

    def test_a_large_webp_loses_but_a_little(self):
        image = pictures.scene("RGBA", size=(4000, 2500))
        came = opened(reencode(pictures.encoded(image, "WEBP", lossless=True, method=0)).data)
        assert came.mode == "RGBA"
        for place in ((10, 10), (3990, 2490), (2000, 100)):
            pair = zip(came.getpixel(place), image.getpixel(place), strict=True)
            assert all(abs(one - two) <= 60 for one, two in pair)


class TestAnimations:
    @pytest.mark.parametrize("form", ["GIF", "PNG", "WEBP"])
    @pytest.mark.parametrize("mode", ["P", "RGBA"])
    def test_they_go_on_moving(self, form, mode):
        data = pictures.animation(form, mode=mode, **({"lossless": True} if form == "WEBP" else {}))
        before, after = Image.open(BytesIO(data)), reencoded(data)
        assert after.n_frames == before.n_frames == 5
        assert after.info["loop"] == before.info["loop"] == 3
        for one, two in zip(
            ImageSequence.Iterator(before), ImageSequence.Iterator(after), strict=True
        ):
            one.load()
            two.load()
            assert one.info["duration"] == two.info["duration"]
            assert difference(one, two) <= (3 if form == "WEBP" else 0)

    def test_a_gif_that_plays_once_does_not_go_on_for_ever(self):
        first, *rest = pictures.frames(3)
        data = pictures.encoded(first, "GIF", save_all=True, append_images=rest)
        assert "loop" not in reencoded(data).info

    def test_a_gif_that_clears_its_frames_does_so_still(self):
        made = []
        for number in range(4):
            frame = Image.new("RGBA", (32, 16), (0, 0, 0, 0))
            frame.paste((200, 0, 0, 255), (number * 8, 0, number * 8 + 8, 16))
            made.append(frame)
        data = pictures.encoded(
            made[0], "GIF", save_all=True, append_images=made[1:], duration=100, disposal=2
        )
        after = reencoded(data)
        for number, frame in enumerate(ImageSequence.Iterator(after)):
            seen = frame.convert("RGBA")
            covered = [seen.getpixel((x, 8))[3] > 0 for x in range(0, 32, 8)]
            assert covered == [place == number for place in range(4)]

    def test_a_gif_of_small_changes_stays_small(self):
        """Even though something in it is transparent, as its corner is here."""
        background = Image.effect_noise((320, 240), 60).convert("RGBA")
        made = []
        for number in range(20):
            frame = background.copy()
            frame.paste((0, 0, 0, 0), (0, 0, 40, 40))
            frame.paste((200, 0, 0, 255), (number * 8, 100, number * 8 + 8, 108))
            made.append(frame)
        data = pictures.encoded(made[0], "GIF", save_all=True, append_images=made[1:], duration=50)
        after = reencoded(data)
        for one, two in zip(
            ImageSequence.Iterator(opened(data)), ImageSequence.Iterator(after), strict=True
        ):
            assert difference(one, two) == 0
        assert len(reencode(data).data) < 1.2 * len(data)

    @pytest.mark.parametrize("seed", range(8))
    def test_a_gif_shows_what_it_did_whatever_comes_and_goes(self, seed):
        chance, made = random.Random(seed), []
        for _ in range(6):
            frame = Image.new("RGBA", (16, 16))
            for _ in range(chance.randrange(4)):
                left, top = chance.randrange(16), chance.randrange(16)
                colour = chance.choice([(200, 0, 0, 255), (0, 0, 200, 255), (0, 0, 0, 0)])
                frame.paste(colour, (left, top, left + 6, top + 6))
            made.append(frame)
        data = pictures.encoded(
            made[0], "GIF", save_all=True, append_images=made[1:], duration=50, disposal=2
        )
        after = reencoded(data)
        shown = [frame.convert("RGBA") for frame in ImageSequence.Iterator(after)]
        meant = [frame.convert("RGBA") for frame in ImageSequence.Iterator(opened(data))]
        assert [frame.getchannel("A").tobytes() for frame in shown] == [
            frame.getchannel("A").tobytes() for frame in meant
        ]

    def test_an_apng_with_a_picture_for_others_keeps_it(self):
        first, *rest = pictures.frames(4, "RGB")
        data = pictures.encoded(
            first, "PNG", save_all=True, default_image=True, append_images=rest, duration=100
        )
        before, after = opened(data), reencoded(data)
        assert before.info["default_image"]
        assert after.info["default_image"]
        assert after.n_frames == before.n_frames == 4

    def test_their_metadata_goes_too(self):
        for form, options in {
            "GIF": {"comment": SECRET},
            "PNG": {
                "exif": pictures.exif(),
                "pnginfo": pictures.png_texts(SECRET.decode()),
            },
            "WEBP": {"exif": pictures.exif(), "xmp": SECRET},
        }.items():
            data = pictures.animation(form, mode="RGB", **options)
            assert SECRET in data
            assert reencoded(data).n_frames == 5

    @pytest.mark.parametrize(
        ("count", "size"),
        [(1001, (1, 1)), (2, (3001, 3000)), (8, (2600, 2600))],
        ids=["too many", "too large", "too large in all"],
    )
    def test_they_are_limited(self, count, size):
        made = [Image.new("L", size, number % 2 * 255) for number in range(count)]
        data = pictures.encoded(made[0], "GIF", save_all=True, append_images=made[1:])
        with pytest.raises(ImageError, match="as an animation"):
            reencode(data)


class TestRefused:
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
            (pictures.gif_that_grows(5000), "larger than the image"),
            (pictures.png_bomb(5000, 5000), "damaged"),
            (pictures.png_bomb(0, 5), "Must be a PNG"),
        ],
        ids=range(21),
    )
    def test_what_is_no_picture_is_refused(self, data, reason):
        with pytest.raises(ImageError, match=reason):
            reencode(data)

    @pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
    @pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
    def test_what_is_cut_off_is_refused(self, form, share):
        image = Image.effect_noise((64, 64), 80).convert("RGB")
        data = pictures.encoded(image, form)
        with pytest.raises(ImageError, match=r"damaged|Must be a PNG"):
            reencode(data[: int(len(data) * share)])

    def test_texts_that_explode_are_refused(self):
        bomb = zlib.compress(b"x" * 10**8)
        chunk = pictures.png_chunk(b"zTXt", b"name\0\0" + bomb)
        plain = pictures.png()
        with pytest.raises(ImageError):
            reencode(plain[:33] + chunk + plain[33:])

    @pytest.mark.parametrize(
        ("form", "part"),
        [
            ("JPEG", b"\xff\xe1\0\x20Exif\0\0" + b"x" * 24),  # Pillow joins them, each time anew
            ("JPEG", b"\xff\xda\0\x0c\3\1\0\2\x11\3\x11\0\x3f\0"),  # each a pass over the picture
            (
                "PNG",
                pictures.png_chunk(b"iCCP", b"x\0\0" + zlib.compress(b"\0" * (2**20 - 1))),
            ),
        ],
        ids=["EXIF", "scans", "profiles"],
    )
    def test_what_is_there_too_often_is_refused_at_once(self, form, part):
        data = pictures.encoded(pictures.scene(), form)
        place = 2 if form == "JPEG" else 33
        with pytest.raises(ImageError, match="too many segments"):
            reencode(data[:place] + part * (2**20 // len(part)) + data[place:])

    def test_texts_that_are_long_in_all_are_refused(self):
        text = zlib.compress(("\N{GRINNING FACE}" + "a" * (2**20 - 10)).encode())
        chunk = pictures.png_chunk(b"iTXt", b"name\0\1\0\0\0" + text)
        plain = pictures.png()
        assert reencode(plain[:33] + chunk + plain[33:])
        with pytest.raises(ImageError):
            reencode(plain[:33] + chunk * 5 + plain[33:])

    @pytest.mark.parametrize("size", [(16_385, 1), (1, 16_385)])
    @pytest.mark.parametrize("form", ["PNG", "GIF"])
    def test_long_sides_are_refused(self, form, size):
        with pytest.raises(ImageError, match="16,384 pixels wide and high"):
            reencode(pictures.encoded(Image.new("L", size), form))
        longest = min(size), max(size) - 1
        assert reencode(pictures.encoded(Image.new("L", longest), form)).height == 16_384

    @pytest.mark.parametrize("tag", [b"D2B0", b"D2B3", b"B2D1"])
    @pytest.mark.parametrize(
        "add_profile",
        [hostile.png_with_profile, hostile.jpeg_with_profile],
        ids=["PNG", "JPEG"],
    )
    def test_profiles_with_processing_elements_are_dropped(self, add_profile, tag, monkeypatch):
        """The color engine would read each of their overlapping stages: minutes for kilobytes."""
        monkeypatch.delattr(ImageCms, "profileToProfile")
        data = add_profile(hostile.expensive_profile(3, tag))
        assert difference(reencoded(data), opened(data)) < 3

    def test_a_webp_of_many_frames_is_not_counted_as_segments(self):
        """Bytes that mark the segments of another format occur in it by chance."""
        frame = Image.frombytes("RGB", (16, 16), random.Random(1).randbytes(768))
        data = pictures.encoded(frame, "WEBP", lossless=True, xmp=b"\xff\xda" * 501)
        assert reencode(data).media_type == "image/webp"


class TestSize:
    """What is stored has at most as many bytes as what is uploaded."""

    @pytest.mark.parametrize(
        ("form", "options"),
        [
            ("PNG", {"optimize": True}),
            ("JPEG", {"optimize": True, "progressive": True, "quality": 90}),
            ("WEBP", {"lossless": True}),
        ],
    )
    def test_what_comes_out_too_large_is_encoded_smaller(self, form, options):
        image = pictures.scene(size=(300, 300))
        image.paste(Image.effect_noise((200, 200), 40))
        data = pictures.encoded(image, form, **options)
        max_bytes = min(len(data), len(reencode(data).data) - 1)
        assert len(reencode(data, max_bytes).data) <= max_bytes

    @pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
    def test_what_stays_too_large_is_refused(self, form):
        data = pictures.encoded(pictures.scene(), form)
        with pytest.raises(ImageError, match="more than 50 bytes"):
            reencode(data, max_bytes=50)


class TestBroken:
    @pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
    def test_no_broken_file_does_anything_else(self, form):
        """Whatever byte is another, an image comes out or an ImageError."""
        data = pictures.animation(form) if form != "JPEG" else pictures.encoded(
            pictures.scene(), form, exif=pictures.exif())  # fmt: skip
        for place in range(0, len(data), max(1, len(data) // 150)):
            for value in (0x00, 0xFF, data[place] ^ 0x55):
                broken = bytearray(data)
                broken[place] = value
                with suppress(ImageError):
                    reencode(bytes(broken))
