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


def png_of(header: tuple[int, ...], rows: bytes, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG made by hand: width, height, bits a sample and colour type, and further chunks."""
    described = struct.pack(">IIBBBBB", *header, 0, 0, 0)
    parts = ((b"IHDR", described), *chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*part) for part in parts)


def png_bomb(width: int, height: int) -> bytes:
    """A few bytes that claim to be a picture of that size."""
    return png_of((width, height, 8, 2), b"\0" * 1000)


def gif_bomb(width: int, height: int) -> bytes:
    still = bytearray(encoded(scene("P"), "GIF"))
    still[6:10] = struct.pack("<HH", width, height)
    return bytes(still)


def gif_that_grows(side: int) -> bytes:
    """One pixel, and then another one far outside of it."""
    file = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + bytes([0, 0, 0, 255, 0, 0])
    for place, pixel in ((0, b"\x44\x01"), (side - 1, b"\x4c\x01")):
        file += b"," + struct.pack("<HHHHB", place, place, 1, 1, 0) + b"\x02\x02" + pixel + b"\0"
    return file + b";"


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


def renumbered(jpeg: bytes) -> bytes:
    """The same JPEG with its quantization tables 0 and 1 called 1 and 0."""
    file, place = bytearray(jpeg), 2
    while file[place + 1] != 0xDA:
        length = struct.unpack(">H", file[place + 2 : place + 4])[0]
        if file[place + 1] == 0xDB:
            for table in range(place + 4, place + 2 + length, 65):
                file[table] ^= 1
        if file[place + 1] == 0xC0:
            for component in range(file[place + 9]):
                file[place + 12 + 3 * component] ^= 1
        place += 2 + length
    return bytes(file)
