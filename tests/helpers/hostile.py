"""Images that attack decoders: a few bytes that cost much time or memory."""

import io
import random
import struct
import zlib
from collections.abc import Iterator

from PIL import Image, ImageCms

from tests.helpers import pictures


def profile_with_tag(signature: bytes, data: bytes) -> bytes:
    """Return an sRGB profile with one more tag."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    count = int.from_bytes(profile[128:132], "big")
    entries = [
        struct.unpack(">4sII", profile[place : place + 12])
        for place in range(132, 132 + 12 * count, 12)
    ]
    moved = [(name, offset + 12, size) for name, offset, size in entries]
    moved.append((signature, len(profile) + 12, len(data)))
    table = b"".join(struct.pack(">4sII", *entry) for entry in moved)
    body = profile[4:128] + struct.pack(">I", count + 1) + table + profile[132 + 12 * count :]
    return struct.pack(">I", 4 + len(body) + len(data)) + body + data


def overlapping_stages(count: int, side: int = 9) -> bytes:
    """Return a tag of type `mpet` whose elements are all the same large color table."""
    stage = b"clut" + bytes(4) + struct.pack(">HH", 3, 3) + bytes([side] * 3 + [0] * 13)
    stage += bytes(4 * 3 * side**3)
    head = b"mpet" + bytes(4) + struct.pack(">HHI", 3, 3, count)
    place = len(head) + 8 * count
    return head + struct.pack(">II", place, len(stage)) * count + stage


def expensive_profile(count: int, tag: bytes = b"D2B0") -> bytes:
    """Return a profile that makes a color engine read one table `count` times."""
    return profile_with_tag(tag, overlapping_stages(count))


def png_with_profile(profile: bytes) -> bytes:
    chunk = pictures.png_chunk(b"iCCP", b"x\0\0" + zlib.compress(profile, 9))
    plain = pictures.png()
    return plain[:33] + chunk + plain[33:]


def thin_png(height: int, colors: int = 3) -> bytes:
    """Return a PNG one pixel wide; a palette of `colors` makes rows that need much memory each."""
    palette = bytes(range(3 * colors))
    packed = zlib.compressobj(9)
    rows = packed.compress(bytes(2 * height)) + packed.flush()
    head = struct.pack(">IIBBBBB", 1, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", rows), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(pictures.png_chunk(*part) for part in parts)


def thin_apng(height: int) -> bytes:
    """Return an animation of two frames, each one pixel wide."""
    control = struct.pack(">IIIIHHBB", 1, height, 0, 0, 1, 10, 0, 0)
    rows = zlib.compress(bytes(2 * height), 9)
    head = struct.pack(">IIBBBBB", 1, height, 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", head),
        (b"acTL", struct.pack(">II", 2, 0)),
        (b"PLTE", bytes(9)),
        (b"fcTL", struct.pack(">I", 0) + control),
        (b"IDAT", rows),
        (b"fcTL", struct.pack(">I", 1) + control),
        (b"fdAT", struct.pack(">I", 2) + rows),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(pictures.png_chunk(*part) for part in parts)


def long_animation(form: str, frames: int = 1000, side: int = 200) -> bytes:
    """Return an animation of as many pixels as are allowed, all of them noise that moves."""
    chance = random.Random(frames)
    noise = Image.frombytes("L", (side + 50, side + 50), chance.randbytes((side + 50) ** 2))
    made = []
    for _ in range(frames):
        left, top = chance.randrange(50), chance.randrange(50)
        made.append(noise.crop((left, top, left + side, top + side)).convert("RGB"))
    options = {"quality": 5, "method": 0, "kmax": 0} if form == "WEBP" else {}
    return pictures.encoded(
        made[0], form, save_all=True, append_images=made[1:], duration=20, **options
    )


def many_scans(count: int) -> bytes:
    """Return a JPEG with `count` passes over the image."""
    plain = pictures.encoded(pictures.scene(size=(2000, 2000)), "JPEG", progressive=True)
    end = plain.rindex(b"\xff\xd9")
    scan = b"\xff\xda\0\x08\1\1\0\1\x3f\x21" + b"\0"
    return plain[:end] + scan * count + plain[end:]


def mutations(data: bytes, seed: int) -> Iterator[bytes]:
    """Yield endless copies of a file in each of which a few bytes are wrong."""
    chance = random.Random(seed)
    while True:
        broken = bytearray(data)
        for _ in range(chance.randint(1, 8)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        yield bytes(broken)


def jpeg_with_profile(profile: bytes) -> bytes:
    out = io.BytesIO()
    pictures.scene().save(out, "JPEG", icc_profile=profile)
    return out.getvalue()
