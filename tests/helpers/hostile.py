"""Images that attack decoders: small files that cost much time or memory."""

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
        struct.unpack(">4sII", profile[offset : offset + 12])
        for offset in range(132, 132 + 12 * count, 12)
    ]
    moved = [(name, offset + 12, size) for name, offset, size in entries]
    moved.append((signature, len(profile) + 12, len(data)))
    table = b"".join(struct.pack(">4sII", *entry) for entry in moved)
    body = profile[4:128] + struct.pack(">I", count + 1) + table + profile[132 + 12 * count :]
    return struct.pack(">I", 4 + len(body) + len(data)) + body + data


def overlapping_stages(count: int, side: int = 9) -> bytes:
    """Return an `mpet` tag whose elements all refer to one large color table."""
    stage = b"clut" + bytes(4) + struct.pack(">HH", 3, 3) + bytes([side] * 3 + [0] * 13)
    stage += bytes(4 * 3 * side**3)
    head = b"mpet" + bytes(4) + struct.pack(">HHI", 3, 3, count)
    offset = len(head) + 8 * count
    return head + struct.pack(">II", offset, len(stage)) * count + stage


def expensive_profile(count: int, tag: bytes = b"D2B0") -> bytes:
    """Return a profile that makes a color engine process one table `count` times."""
    return profile_with_tag(tag, overlapping_stages(count))


def png_with_profile(profile: bytes) -> bytes:
    chunk = pictures.png_chunk(b"iCCP", b"x\0\0" + zlib.compress(profile, 9))
    plain = pictures.png()
    return plain[:33] + chunk + plain[33:]


def thin_png(height: int) -> bytes:
    """Return a PNG one pixel wide. Each of its rows needs much memory."""
    packed = zlib.compressobj(9)
    rows = packed.compress(bytes(2 * height)) + packed.flush()
    head = struct.pack(">IIBBBBB", 1, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", bytes(9)), (b"IDAT", rows), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(pictures.png_chunk(*part) for part in parts)


def thin_apng(height: int) -> bytes:
    """Return an animation with two frames of one pixel in width."""
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


def long_animation(format: str, frames: int = 1000, side: int = 200) -> bytes:
    """Return an animation of moving noise with the largest allowed number of pixels."""
    rng = random.Random(frames)
    noise = Image.frombytes("L", (side + 50, side + 50), rng.randbytes((side + 50) ** 2))
    images = []
    for _ in range(frames):
        left, top = rng.randrange(50), rng.randrange(50)
        images.append(noise.crop((left, top, left + side, top + side)).convert("RGB"))
    options = {"quality": 5, "method": 0, "kmax": 0} if format == "WEBP" else {}
    return pictures.encoded(
        images[0], format, save_all=True, append_images=images[1:], duration=20, **options
    )


def many_scans(count: int) -> bytes:
    """Return a JPEG with `count` scans over the image."""
    plain = pictures.encoded(pictures.scene(size=(2000, 2000)), "JPEG", progressive=True)
    end = plain.rindex(b"\xff\xd9")
    scan = b"\xff\xda\0\x08\1\1\0\1\x3f\x21" + b"\0"
    return plain[:end] + scan * count + plain[end:]


def mutations(data: bytes, seed: int) -> Iterator[bytes]:
    """Yield copies of a file with a few random bytes changed, without end."""
    rng = random.Random(seed)
    while True:
        broken = bytearray(data)
        for _ in range(rng.randint(1, 8)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        yield bytes(broken)


def jpeg_with_profile(profile: bytes) -> bytes:
    return pictures.encoded(pictures.scene(), "JPEG", icc_profile=profile)
