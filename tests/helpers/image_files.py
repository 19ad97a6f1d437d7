"""Read the parts of image files, and check what the codec returns."""

import struct
from io import BytesIO

from PIL import Image, ImageChops, ImageStat

from posting.images.codec import LIMITS, THUMBNAIL_SIDE, ReencodedImage, Rendition, Renditions
from posting.images.codec import child as codec

MAX_BYTES = 5 * 2**20
SECRET = b"a secret comment"

# The parts of a file without EXIF, XMP, ICC profile, texts and comments.
ALLOWED_PARTS = {
    "PNG": {"IHDR", "PLTE", "tRNS", "IDAT", "IEND", "acTL", "fcTL", "fdAT"},
    "JPEG": {"E0", "EE", "DB", "C0", "C4"},
    "WEBP": {"VP8 ", "VP8L", "VP8X", "ALPH", "ANIM", "ANMF"},
    "GIF": {"frame", "extension F9", "extension FF"},
}


def reencode(data, max_bytes=MAX_BYTES):
    described, (*files, encoded) = codec.reencode(data, max_bytes=max_bytes, limits=LIMITS)
    found = {}
    for rendition, file in zip(described.pop("renditions"), files, strict=True):
        assert rendition["bytes"] == len(file)
        found[rendition["side"]] = Rendition(rendition["width"], rendition["height"], file)
    renditions = Renditions(found.pop(THUMBNAIL_SIDE), found)
    return ReencodedImage(data=encoded, renditions=renditions, **described)


def reencode_and_check(data):
    """Reencode an image, check that only allowed parts are left, and return the new image.

    Check its renditions as well.
    """
    reencoded = reencode(data)
    open_renditions(reencoded)
    image = open_image(reencoded.data)
    assert reencoded.media_type == Image.MIME[image.format]
    assert (reencoded.width, reencoded.height) == image.size
    assert set(part_names(reencoded.data)) <= ALLOWED_PARTS[image.format]
    assert SECRET not in reencoded.data
    assert not image.getexif()
    assert reencode(reencoded.data).media_type == reencoded.media_type
    return image


def open_renditions(reencoded):
    """Check the renditions of an image, and return them by their sides."""
    renditions = {THUMBNAIL_SIDE: reencoded.renditions.thumbnail, **reencoded.renditions.sizes}
    images = {}
    for side, rendition in renditions.items():
        image = images[side] = open_image(rendition.data)
        assert image.format == "WEBP"
        assert image.n_frames == 1
        assert image.size == (rendition.width, rendition.height)
        assert max(image.size) <= min(side, max(reencoded.width, reencoded.height))
        assert len(rendition.data) <= LIMITS[side]
        assert set(part_names(rendition.data)) <= {"VP8 ", "VP8X", "ALPH"}
        assert SECRET not in rendition.data
        if side != THUMBNAIL_SIDE:
            assert max(image.size) == side < max(reencoded.width, reencoded.height)
            assert len(rendition.data) < len(reencoded.data)
    return images


def open_thumbnail(reencoded):
    """Check the thumbnail of an image, and return it."""
    return open_renditions(reencoded)[THUMBNAIL_SIDE]


def difference(image, other):
    """Return the mean difference between the bytes of two images."""
    assert image.size == other.size
    pair = [each.convert("RGBA") for each in (image, other)]
    return sum(ImageStat.Stat(ImageChops.difference(*pair)).mean) / 4


def quantization(jpeg):
    """Return the quantization table of each component."""
    return [jpeg.quantization[table] for _, _, _, table in jpeg.layer]


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
