"""Images for tests, valid and malformed."""

import random
import struct
import zlib
from io import BytesIO

from PIL import Image, ImageCms, ImageDraw
from PIL.PngImagePlugin import PngInfo

GPS = 0x8825
MAKER = 0x010F
ORIENTATION = 0x0112
USER_COMMENT = 0x9286


def encoded(image: Image.Image, format: str, **options: object) -> bytes:
    out = BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def scene(mode: str = "RGB", size: tuple[int, int] = (48, 32)) -> Image.Image:
    """Return an image with different corners, which shows its orientation."""
    image = Image.new("RGBA", size, (240, 240, 240, 255))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, size[0] // 3, size[1] // 3), fill=(200, 0, 0, 255))
    draw.rectangle((size[0] // 2, size[1] // 2, *size), fill=(0, 0, 200, 128))
    return image.convert(mode)


def noise(size: tuple[int, int]) -> Image.Image:
    """Return an image that no format compresses well."""
    return Image.frombytes("RGB", size, random.Random(1).randbytes(3 * size[0] * size[1]))


def photo(size: tuple[int, int] = (700, 500)) -> bytes:
    """Return a JPEG that is larger than the smallest size for pages."""
    return encoded(scene("RGB", size), "JPEG")


def png(**options: object) -> bytes:
    return encoded(scene(), "PNG", **options)


def frames(count: int, mode: str = "P") -> list[Image.Image]:
    """Return the frames of an animation of a moving square."""
    images = []
    for number in range(count):
        frame = scene("RGB")
        ImageDraw.Draw(frame).rectangle((number * 4, 8, number * 4 + 8, 16), fill=(0, 160, 0))
        images.append(frame.quantize(16) if mode == "P" else frame.convert(mode))
    return images


def animation(format: str, count: int = 5, mode: str = "P", **options: object) -> bytes:
    first, *rest = frames(count, mode)
    durations = [100 + 20 * number for number in range(count)]
    return encoded(
        first, format, save_all=True, append_images=rest, duration=durations, loop=3, **options
    )


def exif(orientation: int = 1) -> Image.Exif:
    """Return EXIF as phones write it: location, maker and orientation."""
    exif = Image.Exif()
    exif[MAKER] = "A Phone Maker"
    exif[USER_COMMENT] = "a secret comment"
    exif.get_ifd(GPS).update({1: "N", 2: (52.0, 5.0, 30.0), 3: "E", 4: (4.0, 18.0, 0.0)})
    exif[ORIENTATION] = orientation
    return exif


def png_chunk(name: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)


def build_png(header: tuple[int, ...], rows: bytes, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG images by hand: width, height, bits a sample and colour type, and further chunks."""
    ihdr = struct.pack(">IIBBBBB", *header, 0, 0, 0)
    parts = ((b"IHDR", ihdr), *chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*part) for part in parts)


def png_bomb(width: int, height: int) -> bytes:
    """Return a few bytes that claim to be an image of that size."""
    return build_png((width, height, 8, 2), b"\0" * 1000)


def gif_bomb(width: int, height: int) -> bytes:
    still = bytearray(encoded(scene("P"), "GIF"))
    still[6:10] = struct.pack("<HH", width, height)
    return bytes(still)


def growing_gif(side: int) -> bytes:
    """Return a GIF of one pixel, whose second frame is a pixel far outside of the first."""
    file = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + bytes([0, 0, 0, 255, 0, 0])
    for offset, pixel in ((0, b"\x44\x01"), (side - 1, b"\x4c\x01")):
        file += b"," + struct.pack("<HHHHB", offset, offset, 1, 1, 0) + b"\x02\x02" + pixel + b"\0"
    return file + b";"


def png_texts(text: str) -> PngInfo:
    texts = PngInfo()
    texts.add_text("Comment", text)
    texts.add_itxt("Other", text)
    return texts


def swapped_profile() -> bytes:
    """Return a color profile that swaps red and green."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    count = int.from_bytes(profile[128:132], "big")
    entries = {
        bytes(profile[offset : offset + 4]): offset for offset in range(132, 132 + 12 * count, 12)
    }
    red, green = entries[b"rXYZ"], entries[b"gXYZ"]
    profile[red : red + 4], profile[green : green + 4] = b"gXYZ", b"rXYZ"
    return bytes(profile)


def swap_quantization_tables(jpeg: bytes) -> bytes:
    """Return the same JPEG with its quantization tables 0 and 1 numbered 1 and 0."""
    file, offset = bytearray(jpeg), 2
    while file[offset + 1] != 0xDA:
        length = struct.unpack(">H", file[offset + 2 : offset + 4])[0]
        if file[offset + 1] == 0xDB:
            for table in range(offset + 4, offset + 2 + length, 65):
                file[table] ^= 1
        if file[offset + 1] == 0xC0:
            for component in range(file[offset + 9]):
                file[offset + 12 + 3 * component] ^= 1
        offset += 2 + length
    return bytes(file)


def gray_profile(gamma: float) -> bytes:
    """Return a color profile of gray images."""
    return _profile(b"GRAY", {b"kTRC": gamma})


def rgb_profile(gamma: float) -> bytes:
    """Return a color profile with the primaries of sRGB."""
    return _profile(b"RGB ", {b"rTRC": gamma, b"gTRC": gamma, b"bTRC": gamma})


def _profile(color_space: bytes, curves: dict[bytes, float]) -> bytes:
    """Return a color profile (ICC.1:2022, section 7) with curves in place of those of sRGB."""
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    tags = {}
    for offset in range(132, 132 + 12 * int.from_bytes(srgb[128:132], "big"), 12):
        name, start, size = struct.unpack(">4sII", srgb[offset : offset + 12])
        if name in {b"wtpt", b"rXYZ", b"gXYZ", b"bXYZ"}:
            tags[name] = srgb[start : start + size]
    for name, gamma in curves.items():
        tags[name] = b"para" + struct.pack(">IHHi", 0, 0, 0, round(gamma * 2**16))
    directory, content = struct.pack(">I", len(tags)), b""
    for name, tag in tags.items():
        directory += struct.pack(">4sII", name, 132 + 12 * len(tags) + len(content), len(tag))
        content += tag
    head = struct.pack(">I", 128 + len(directory) + len(content))
    return head + srgb[4:16] + color_space + srgb[20:128] + directory + content
