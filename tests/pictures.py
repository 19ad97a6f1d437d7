"""Pictures, good and bad, made on the spot."""

import struct
import zlib
from io import BytesIO

from PIL import Image, ImageCms, ImageDraw
from PIL.PngImagePlugin import PngInfo

GPS = 0x8825
ORIENTATION = 0x0112


def encoded(image: Image.Image, form: str, **options: object) -> bytes:
    out = BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def scene(mode: str = "RGB", size: tuple[int, int] = (48, 32)) -> Image.Image:
    """A picture whose corners differ, so that it shows how it was turned."""
    image = Image.new("RGBA", size, (240, 240, 240, 255))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, size[0] // 3, size[1] // 3), fill=(200, 0, 0, 255))
    draw.rectangle((size[0] // 2, size[1] // 2, *size), fill=(0, 0, 200, 128))
    return image.convert(mode)


def png(**options: object) -> bytes:
    return encoded(scene(), "PNG", **options)


def frames(count: int, mode: str = "P") -> list[Image.Image]:
    """A square that wanders: the frames of an animation."""
    made = []
    for number in range(count):
        frame = scene("RGB")
        ImageDraw.Draw(frame).rectangle((number * 4, 8, number * 4 + 8, 16), fill=(0, 160, 0))
        made.append(frame.quantize(16) if mode == "P" else frame.convert(mode))
    return made


def animation(form: str, count: int = 5, mode: str = "P", **options: object) -> bytes:
    first, *rest = frames(count, mode)
    durations = [100 + 20 * number for number in range(count)]
    return encoded(
        first, form, save_all=True, append_images=rest, duration=durations, loop=3, **options
    )


def exif(**tags: int) -> Image.Exif:
    """EXIF as a telephone writes it: where the picture was taken, by what, and which way up."""
    made = Image.Exif()
    made[0x010F] = "A Telephone Maker"
    made[0x9286] = "a secret comment"
    made.get_ifd(GPS).update({1: "N", 2: (52.0, 5.0, 30.0), 3: "E", 4: (4.0, 18.0, 0.0)})
    made[ORIENTATION] = tags.get("orientation", 1)
    return made


def png_chunk(name: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)


def png_bomb(width: int, height: int) -> bytes:
    """A few bytes that claim to be a picture of that size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(b"\0" * 1000)
    return (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", header)
        + png_chunk(b"IDAT", data)
        + png_chunk(b"IEND", b"")
    )


def gif_bomb(width: int, height: int) -> bytes:
    still = bytearray(encoded(scene("P"), "GIF"))
    still[6:10] = struct.pack("<HH", width, height)
    return bytes(still)


def png_texts(text: str) -> PngInfo:
    texts = PngInfo()
    texts.add_text("Comment", text)
    texts.add_itxt("Other", text)
    return texts


def swapped_profile() -> bytes:
    """A colour profile in which what is written as green is meant as red, and the reverse."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    count = int.from_bytes(profile[128:132], "big")
    entries = {
        bytes(profile[place : place + 4]): place for place in range(132, 132 + 12 * count, 12)
    }
    red, green = entries[b"rXYZ"], entries[b"gXYZ"]
    profile[red : red + 4], profile[green : green + 4] = b"gXYZ", b"rXYZ"
    return bytes(profile)
