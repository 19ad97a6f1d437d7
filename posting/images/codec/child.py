"""Decode an untrusted image with Pillow and encode it again, in a process with hard limits.

`posting.images.codec` runs this file by its path, one process per image, because image decoders
have vulnerabilities. It imports only Pillow and the standard library, so that it starts in a tenth
of a second.
"""

import copy  # noqa: F401 - Pillow imports it lazily, which fails once no file can be opened
import json
import math
import os
import re
import resource
import struct
import sys
import warnings
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any

from PIL import (
    Image,
    ImageChops,
    ImageCms,
    ImageOps,
    ImageSequence,
    PngImagePlugin,
    TiffImagePlugin,  # noqa: F401 - imported lazily to read EXIF
    UnidentifiedImageError,
)
from PIL.GifImagePlugin import GifImageFile
from PIL.JpegImagePlugin import JpegImageFile, get_sampling
from PIL.WebPImagePlugin import WebPImageFile

MAX_MEMORY = 768 * 2**20
# Until the size of the image is known, and for each megapixel. The slowest ordinary images take a
# quarter of it on a processor of a cloud server, so they also pass on a small computer.
BASE_CPU_SECONDS = 4
CPU_SECONDS_PER_MEGAPIXEL = 0.44
MAX_CPU_SECONDS = 15
NICENESS = 10  # requests have priority

FORMATS = [
    str(plugin.format)
    for plugin in (PngImagePlugin.PngImageFile, JpegImageFile, WebPImageFile, GifImageFile)
]
MAX_PIXELS = 25_000_000
MAX_SIDE = 16_384

# The encoders of animations hold several frames in memory, or all of them.
MAX_FRAMES = 1000
MAX_FRAME_PIXELS = 9_000_000
MAX_ANIMATION_PIXELS = 40_000_000

# Encoding a lossless WebP needs 25 bytes per pixel, so larger images become lossy.
MAX_LOSSLESS_PIXELS = 8_000_000

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
JPEG_SIGNATURE = b"\xff\xd8\xff"
# Any but those within the data of a scan.
JPEG_MARKER = re.compile(rb"\xff[^\x00\x01\xd0-\xd7\xff]")
# Each scan of a JPEG is a pass over the image. Encoders write 10, and up to 18 for print.
MAX_SCANS = 32
MAX_PROFILE_BYTES = 4 * 2**20

# White, red, green and blue of sRGB as x and y, the white of ICC profiles, and the matrix that
# adapts colors to another white.
SRGB_CHROMATICITY = (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)
D50 = (0.9642, 1.0, 0.8249)
BRADFORD = ((0.8951, 0.2664, -0.1614), (-0.7502, 1.7135, 0.0367), (0.0389, -0.0685, 1.0296))
BRADFORD_INVERSE = (
    (0.9869929, -0.1470543, 0.1599627),
    (0.4323053, 0.5183603, 0.0492912),
    (-0.0085287, 0.0400428, 0.9684867),
)

# Encoder options for a second attempt when the first result is too large. There is none for PNG,
# where the highest compression gains 2 % in four times the time.
SMALLER: dict[str, dict[str, Any]] = {
    "JPEG": {"optimize": True, "progressive": True},
    "WEBP": {"quality": 50, "lossless": False},
    "GIF": {"optimize": True},
}

# The longest side and the quality of each small copy of an image, in the order in which they are
# tried. With the last try of the thumbnail, any image has less than 20 KB.
THUMBNAIL_SIDE = 320
# The ratio of width to height of faces (256 and 64 pixels) and covers (1280 and 768), which are cut
# out of the middle of an image, by their longest side.
SHAPES = {256: 1, 64: 1, 1280: 3, 768: 3}
TRIES = {
    1280: ((1280, 75), (1280, 50), (1280, 25), (640, 25)),
    768: ((768, 75), (768, 50), (768, 25), (384, 25)),
    256: ((256, 80), (256, 50), (256, 25), (128, 25)),
    64: ((64, 80), (64, 50), (64, 0)),
    1600: ((1600, 70), (1600, 50), (1600, 25)),
    640: ((640, 75), (640, 50), (640, 25)),
    THUMBNAIL_SIDE: ((320, 75), (320, 50), (320, 25), (200, 25), (100, 0)),
}

Image.preinit()  # imports plugins, which also fails once no file can be opened

# Pillow checks these limits when it opens a file and again for each frame.
Image.MAX_IMAGE_PIXELS = MAX_PIXELS
PngImagePlugin.MAX_TEXT_CHUNK = MAX_PROFILE_BYTES
warnings.simplefilter("error", Image.DecompressionBombWarning)
warnings.filterwarnings("ignore", category=UserWarning, module="PIL")  # tolerated defects
_TooManyPixels = (Image.DecompressionBombWarning, Image.DecompressionBombError)

_SRGB = ImageCms.createProfile("sRGB")


class ImageError(Exception):
    """The file is not an acceptable image; the message says why."""


def main() -> None:
    """Read a file from stdin; write a line of JSON, the renditions and the new file to stdout.

    The arguments are the maximum size of the new file, which is not made with the size 0, and those
    of the renditions, by their sides, as JSON.
    """
    limit_resources()
    max_bytes, limits = map(json.loads, sys.argv[1:])
    try:
        properties, files = reencode(
            sys.stdin.buffer.read(),
            max_bytes=max_bytes,
            limits={int(side): limit for side, limit in limits.items()},
        )
    except ImageError as error:
        properties, files = {"error": str(error)}, []
    sys.stdout.buffer.write(json.dumps(properties).encode() + b"\n" + b"".join(files))


def limit_resources() -> None:
    """Limit memory and CPU time, and forbid new files, sockets and processes."""
    with suppress(OSError):  # the system may forbid it
        os.nice(NICENESS)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")  # when memory runs out, the kernel kills this process first
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (BASE_CPU_SECONDS, MAX_CPU_SECONDS + 1))
    for name in ("CORE", "FSIZE", "NPROC", "NOFILE"):
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (0, 0))


def reencode(
    data: bytes, *, max_bytes: int, limits: Mapping[int, int]
) -> tuple[dict[str, Any], list[bytes]]:
    """Return the properties of an image, and its renditions and its new encoding.

    The format stays the same and metadata is removed. A still image is turned upright and converted
    to sRGB. With `max_bytes` of 0, the encoding is empty. `limits` has the maximum sizes of the
    renditions by their sides. Those of a face or a cover are of the middle of the image.

    Raise ImageError.
    """
    try:
        image, format, options = _decode(_without_metadata(data))
        properties = {
            "media_type": Image.MIME[format],
            "width": image.width,
            "height": image.height,
        }
        encoded = _encode(image, format, options, max_bytes) if max_bytes else b""
        if shape := SHAPES.get(max(limits)):
            image = _middle_of(image, shape)
        elif "save_all" in options:  # an animation has no sizes
            limits = {THUMBNAIL_SIDE: limits[THUMBNAIL_SIDE]}
        # Now, since converting a GIF changes the palette that is encoded.
        renditions = make_renditions(image, limits, len(encoded or data))
        properties["renditions"] = [
            {"side": side, "width": width, "height": height, "bytes": len(file)}
            for side, (width, height), file in renditions
        ]
    except _TooManyPixels:
        raise ImageError(f"Must have at most {MAX_PIXELS:,} pixels.") from None
    except UnidentifiedImageError:
        raise ImageError("Must be a PNG, JPEG, WebP or GIF image.") from None
    except MemoryError:
        raise ImageError("Cannot be decoded: it needs too much memory.") from None
    except ImageError:
        raise
    except Exception as error:  # decoders raise almost anything for a damaged file
        raise ImageError("Cannot be decoded: it is damaged.") from error
    return properties, [*(file for _, _, file in renditions), encoded]


def make_renditions(
    image: Any, limits: Mapping[int, int], size: int
) -> list[tuple[int, tuple[int, int], bytes]]:
    """Return the side of each rendition of an image, its width and height, and its WebP.

    `limits` has their maximum sizes by their sides. There is always a thumbnail, which is the first
    frame of an animation, or both copies of a face or a cover. The image has more pixels than the
    others, and more bytes: `size`.
    """
    image.seek(0)
    if image.mode == "I;16":  # `convert` would keep only the darkest 256 shades
        image = image.point(lambda shade: shade / 256).convert("L")
    mode = "RGBA" if image.has_transparency_data else "RGB"
    small = image if image.mode == mode else image.convert(mode)
    renditions = []
    for side in sorted(limits, reverse=True):  # each one is made of the last, which saves time
        if side == THUMBNAIL_SIDE or side in SHAPES:
            small, file = _shrink(small, TRIES[side], limits[side])
        elif max(image.size) <= side:
            continue
        else:
            small, file = _shrink(small, TRIES[side], min(limits[side], size - 1))
        if file:
            renditions.append((side, small.size, file))
    return renditions[::-1]


def _middle_of(image: Any, shape: int) -> Any:
    """Return the largest part of a shape in the middle of an image, or of its first frame."""
    image.seek(0)
    width = min(image.width, image.height * shape)
    height = max(1, width // shape)
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))


def _shrink(
    image: Any, tries: Sequence[tuple[int, int]], max_bytes: int
) -> tuple[Any, bytes | None]:
    """Return a smaller image, and its encoding as WebP, or None if all tries are too large."""
    for side, quality in tries:
        scale = min(1, side / max(image.size))
        size = tuple(max(1, round(scale * length)) for length in image.size)
        image = image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3)
        image.info = {}  # the metadata of an animation
        out = BytesIO()
        # The default method takes four times as long, for a file of the same size.
        image.save(out, "WEBP", quality=quality, alpha_quality=quality, method=1)
        if out.tell() <= max_bytes:
            return image, out.getvalue()
    return image, None


def _without_metadata(data: bytes) -> bytes:
    """Return a PNG or JPEG without what no browser needs to show it, and other files as they are.

    Defects in those parts then do no harm, and they cost no time.
    """
    if data.startswith(PNG_SIGNATURE):
        return b"".join([PNG_SIGNATURE, *_needed_chunks(data)])
    if data.startswith(JPEG_SIGNATURE):
        return b"".join(_needed_segments(data))
    return data


def _needed_chunks(data: bytes) -> Iterator[bytes]:
    """Yield the chunks of a PNG that are needed to show it.

    Browsers ignore other chunks, and color and transparency that are damaged or repeated. Damaged
    frames, and files that end before the image, are left to Pillow, which refuses them.
    """
    offset, color_type = len(PNG_SIGNATURE), data[25:26]
    seen: set[bytes] = set()
    while offset < len(data):
        size, name = int.from_bytes(data[offset : offset + 4]), data[offset + 4 : offset + 8]
        end = offset + 12 + size
        content, checksum = data[offset + 8 : end - 4], data[end - 4 : end]
        is_needed = name[:1].isupper() or name in {b"acTL", b"fcTL", b"fdAT"}
        is_needed |= end > len(data) and b"IDAT" not in seen
        if is_needed:
            seen.add(name)
        elif not seen & {name, b"IDAT"} and zlib.crc32(name + content) == int.from_bytes(checksum):
            seen.add(name)  # even if it is not usable, since a profile takes time to read
            is_needed = _is_usable_chunk(name, content, color_type)
        if is_needed:
            yield data[offset:end]
        if name == b"IEND":
            break
        offset = end


def _is_usable_chunk(name: bytes, content: bytes, color_type: bytes) -> bool:
    """Return whether an optional chunk of a PNG changes how the image is shown, and is valid."""
    if name == b"tRNS":  # too long is not a defect
        least = {b"\0": 2, b"\2": 6, b"\3": 1}.get(color_type)
        return least is not None and len(content) >= least
    if name == b"iCCP":
        _, _, compressed = content.partition(b"\0")
        if compressed[:1] != b"\0":  # the only method
            return False
        decompressor = zlib.decompressobj()
        with suppress(zlib.error):
            decompressor.decompress(compressed[1:], MAX_PROFILE_BYTES)
        return decompressor.eof
    return name == b"eXIf" or len(content) == {b"gAMA": 4, b"cHRM": 32, b"sRGB": 1}.get(name)


def _needed_segments(data: bytes) -> Iterator[bytes]:
    """Yield the segments of a JPEG that are needed to show it.

    Other images often follow the first one, and Pillow would read them. Raise ImageError if the
    first one has too many scans.
    """
    offset, scans, has_exif = 0, 0, False
    while marker := JPEG_MARKER.search(data, offset):
        start, kind = marker.start(), marker[0][1]
        if scans:
            yield data[offset:start]  # the data of a scan
        offset = start + 2
        if kind == 0xD8:  # the start of the image
            yield marker[0]
            continue
        if kind == 0xD9:  # its end
            yield marker[0]
            return
        offset += max(2, int.from_bytes(data[offset : offset + 2]))
        segment = data[start:offset]
        scans += kind == 0xDA
        if scans > MAX_SCANS:
            raise ImageError(f"Must have at most {MAX_SCANS} scans.")
        is_exif = segment.startswith(b"Exif\0\0", 4)
        if kind < 0xE0 or _is_needed_metadata(segment) or (is_exif and not has_exif):
            yield segment
        has_exif |= is_exif
    yield data[offset:]


def _is_needed_metadata(segment: bytes) -> bool:
    """Return whether an application segment of a JPEG says how its colors are encoded."""
    sizes = {b"JFIF\0": 14, b"Adobe": 12, b"ICC_PROFILE\0": 14}  # shorter ones are ignored
    return any(
        segment.startswith(name, 4) and len(segment) >= 4 + size for name, size in sizes.items()
    )


def _raise_cpu_limit(image: Any) -> None:
    """Allow the time that an image of this size needs.

    A test that calls this in its own process has no limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    megapixels = image.width * image.height * getattr(image, "n_frames", 1) / 1e6
    seconds = math.ceil(BASE_CPU_SECONDS + CPU_SECONDS_PER_MEGAPIXEL * megapixels)
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_CPU, (min(seconds, MAX_CPU_SECONDS), hard))


def _decode(data: bytes) -> tuple[Any, str, dict[str, Any]]:
    """Return an image, its format, and the options to encode it with."""
    image: Any = Image.open(BytesIO(data), formats=FORMATS)
    if max(image.size) > MAX_SIDE:
        raise ImageError(f"Must be at most {MAX_SIDE:,} pixels wide and high.")
    format = image.format
    _raise_cpu_limit(image)
    options = _encoder_options(image, format, data)
    if format != "JPEG" and image.is_animated:
        image, animation_options = _prepare_animation(image, format)
        return image, format, options | animation_options
    key = image.info.get("transparency")
    if format == "PNG" and key is not None:  # scale it to 8 bits, as Pillow scales other colors
        bits = data[24]
        if image.mode == "L" and isinstance(key, int):
            image.info["transparency"] = key * 255 // (2**bits - 1)
        elif image.mode == "RGB" and key and bits == 16:
            image.info["transparency"] = tuple(part >> 8 for part in key)
    image.load()
    image.info.pop("xmp", None)  # browsers ignore the orientation in it
    try:
        image = ImageOps.exif_transpose(image)  # a copy, which frees the decoder's memory
    except MemoryError:
        raise
    except Exception:  # the metadata is unreadable
        image = image.copy()
    image = _convert_to_srgb(image)
    image.info = {name: image.info[name] for name in {"transparency"} & image.info.keys()}
    return image, format, options


def _encode(image: Any, format: str, options: dict[str, Any], max_bytes: int) -> bytes:
    """Return the encoding of an image in at most `max_bytes`. Raise ImageError."""
    encoded = _save(image, format, options, max_bytes)
    if encoded is None and format in SMALLER:
        if tables := options.get("qtables"):  # a JPEG: quantize more coarsely
            coarser = [[min(255, step + step // 4) for step in table] for table in tables]
            options = options | {"qtables": coarser}
        encoded = _save(image, format, options | SMALLER[format], max_bytes)
    if encoded is None:
        raise ImageError(f"Has more than {max_bytes:,} bytes after it is encoded again.")
    return encoded


class _FileTooLargeError(Exception):
    """The encoder has written more than the file may have."""


class _LimitedFile(BytesIO):
    """A file in memory that ends an encoder once it has written more than `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self.max_bytes = max_bytes

    def write(self, data: Any) -> int:
        written = super().write(data)
        if self.tell() > self.max_bytes:
            raise _FileTooLargeError
        return written


def _save(image: Any, format: str, options: dict[str, Any], max_bytes: int) -> bytes | None:
    """Return the encoding of an image, or None if it has more than `max_bytes`."""
    out = _LimitedFile(max_bytes)
    try:
        image.save(out, format, **options)
    except _FileTooLargeError:
        return None
    return out.getvalue()


def _encoder_options(image: Any, format: str, data: bytes) -> dict[str, Any]:
    """Return options that keep quality and size close to the original."""
    if format == "JPEG":
        tables = [image.quantization[table] for _, _, _, table in image.layer[:3]]
        return {"qtables": tables, "subsampling": get_sampling(image)}
    if format != "WEBP":
        return {}
    if image.width * image.height * image.n_frames > MAX_LOSSLESS_PIXELS:
        return {"method": 0, "quality": 85, "alpha_quality": 10}
    return {"method": 2, "quality": 85, "lossless": _is_lossless_webp(data)}


def _is_lossless_webp(data: bytes) -> bool:
    """Return whether the first frame of a WebP is lossless, by its chunks (RFC 9649, section 2)."""
    offset = 12
    while (name := data[offset : offset + 4]) not in {b"VP8L", b"VP8 ", b"ALPH", b""}:
        size = int.from_bytes(data[offset + 4 : offset + 8], "little")
        offset += 8 + (16 if name == b"ANMF" else size + size % 2)  # ANMF contains other chunks
    return name == b"VP8L"


def _convert_to_srgb(image: Any) -> Any:
    """Convert an image to sRGB; one without a usable color profile is taken to be sRGB already."""
    profile = image.info.get("icc_profile")
    if profile is None:
        profile = _described_profile(image)
    if profile and not _has_processing_elements(profile):
        with suppress(ImageCms.PyCMSError):
            return _convert_from(profile, image)
    return image.convert("RGB") if image.mode == "CMYK" else image


def _convert_from(profile: bytes, image: Any) -> Any:
    """Convert an image from a profile to sRGB. Raise PyCMSError if they do not fit together."""
    if image.mode == "P":  # convert the palette, so that a pixel stays one byte
        colors = bytes(image.getpalette("RGB"))
        palette = Image.frombytes("RGB", (len(colors) // 3, 1), colors)
        image.putpalette(_to_srgb(profile, palette).tobytes())
        return image
    if image.mode in {"L", "LA", "I;16"}:
        return _convert_gray(profile, image)
    if image.mode == "RGB" and image.has_transparency_data:
        image = image.convert("RGBA")
    return _to_srgb(profile, image) if image.mode in {"RGB", "RGBA", "CMYK"} else image


def _to_srgb(profile: bytes, image: Any) -> Any:
    mode = "RGBA" if image.mode == "RGBA" else "RGB"
    return ImageCms.profileToProfile(image, BytesIO(profile), _SRGB, outputMode=mode)


def _convert_gray(profile: bytes, image: Any) -> Any:
    """Convert a gray image from a profile, and keep it gray. One of 16 bits gets 8."""
    shades = 2**16 if image.mode == "I;16" else 2**8
    levels: Any = image.convert("I") if image.mode == "I;16" else image.getchannel("L")
    if ImageCms.getOpenProfile(BytesIO(profile)).profile.xcolor_space == "RGB ":
        ramp = Image.frombytes("L", (2**8, 1), bytes(range(2**8))).convert("RGB")
    elif image.mode == "I;16":
        ramp = Image.frombytes("I;16", (shades, 1), array("H", range(shades)).tobytes())
    else:
        ramp = Image.frombytes("L", (shades, 1), bytes(range(shades)))
    converted = _to_srgb(profile, ramp).convert("L").tobytes()
    gray = levels.point(
        [converted[shade * len(converted) // shades] for shade in range(shades)], "L"
    )
    key = image.info.get("transparency")
    if image.mode == "LA":
        gray = Image.merge("LA", (gray, image.getchannel("A")))
    elif isinstance(key, int):  # other shades may have become equal to the transparent one
        opacity = levels.point([255 * (shade != key) for shade in range(shades)], "L")
        gray = Image.merge("LA", (gray, opacity))
    return gray


def _described_profile(image: Any) -> bytes | None:
    """Return a color profile that the chunks gAMA and cHRM of a PNG describe, as browsers do."""
    gamma, chromaticity = (image.info.get(name) for name in ("gamma", "chromaticity"))
    if not gamma or "srgb" in image.info or (chromaticity is None and abs(gamma - 0.45455) < 0.005):
        return None
    curve = b"para" + struct.pack(">IHHi", 0, 0, 0, min(round(2**16 / gamma), 2**31 - 1))
    if image.mode == "I;16":
        return _build_profile(b"GRAY", {b"kTRC": curve})
    tags = {name + b"TRC": curve for name in (b"r", b"g", b"b")}
    try:
        primaries = _adapted_primaries(chromaticity or SRGB_CHROMATICITY)
        for name, color in zip((b"r", b"g", b"b"), primaries, strict=True):
            numbers = (round(2**16 * part) for part in color)
            tags[name + b"XYZ"] = b"XYZ " + struct.pack(">Iiii", 0, *numbers)
    except (ZeroDivisionError, struct.error):  # they do not describe a color space
        return None
    return _build_profile(b"RGB ", tags)


def _adapted_primaries(chromaticity: Sequence[float]) -> list[list[float]]:
    """Return the red, green and blue of a color space as XYZ, adapted to the white of ICC profiles.

    `chromaticity` has x and y of the white point and of each primary.
    """
    places = zip(chromaticity[::2], chromaticity[1::2], strict=True)
    white, red, green, blue = ([x / y, 1, (1 - x - y) / y] for x, y in places)
    whole = _determinant(red, green, blue)
    scales = (
        _determinant(white, green, blue) / whole,
        _determinant(red, white, blue) / whole,
        _determinant(red, green, white) / whole,
    )
    cones = zip(_times(BRADFORD, D50), _times(BRADFORD, white), strict=True)
    adaptation = [after / before for after, before in cones]
    adapted = []
    for scale, primary in zip(scales, (red, green, blue), strict=True):
        response = _times(BRADFORD, [scale * part for part in primary])
        scaled = [factor * part for factor, part in zip(adaptation, response, strict=True)]
        adapted.append(_times(BRADFORD_INVERSE, scaled))
    return adapted


def _times(matrix: Sequence[Sequence[float]], vector: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def _determinant(a: Sequence[float], b: Sequence[float], c: Sequence[float]) -> float:
    return (
        a[0] * (b[1] * c[2] - b[2] * c[1])
        + a[1] * (b[2] * c[0] - b[0] * c[2])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
    )


def _build_profile(color_space: bytes, tags: dict[bytes, bytes]) -> bytes:
    """Return an ICC profile (ICC.1:2022, section 7)."""
    directory, content = struct.pack(">I", len(tags)), b""
    for name, tag in tags.items():
        directory += struct.pack(">4sII", name, 132 + 12 * len(tags) + len(content), len(tag))
        content += tag
    head = struct.pack(
        ">I4xI4s4s4s12x4s28x3i48x",
        132 + 12 * len(tags) + len(content),
        0x04000000,
        b"mntr",
        color_space,
        b"XYZ ",
        b"acsp",
        *(round(2**16 * part) for part in D50),
    )
    return head + directory + content


def _has_processing_elements(profile: bytes) -> bool:
    """Return whether an ICC profile has a D2B or B2D tag (ICC.1:2022, sections 7.3 and 9.2).

    Their elements may overlap, so that a few bytes take minutes to process. Cameras do not write
    them.
    """
    count = int.from_bytes(profile[128:132], "big")
    table = profile[132 : 132 + 12 * count]
    return any(table[start : start + 3] in {b"D2B", b"B2D"} for start in range(0, len(table), 12))


def _prepare_animation(image: Any, format: str) -> tuple[Any, dict[str, Any]]:
    """Return an animation, and the encoder options that keep its appearance.

    Pillow yields each frame as it is displayed, whichever way the file composes it.
    """
    pixels = image.width * image.height
    if (
        image.n_frames > MAX_FRAMES
        or pixels > MAX_FRAME_PIXELS
        or pixels * image.n_frames > MAX_ANIMATION_PIXELS
    ):
        raise ImageError(
            f"An animation must have at most {MAX_FRAMES:,} frames, {MAX_FRAME_PIXELS:,} pixels "
            f"in each and {MAX_ANIMATION_PIXELS:,} in total."
        )
    size, frames, durations, opacities = image.size, [], [], []
    for frame in ImageSequence.Iterator(image):
        if frame.size != size:  # a GIF may grow, and then no limit on memory would hold
            raise ImageError("Must not have a frame that is larger than the image.")
        frame.load()
        durations.append(frame.info.get("duration", 0))
        if format == "GIF":
            opacities.append(frame.convert("RGBA").getchannel("A"))
        if format == "PNG":  # its encoder drops palette frames that are not copied from the file
            frames.append(frame.copy())
    image.seek(0)
    options = {"save_all": True, "duration": durations}
    options |= {name: image.info[name] for name in {"loop"} & image.info.keys()}
    if format == "WEBP":
        return image, options | {"method": 0, "kmax": 0}
    options |= {"comment": b"", "icc_profile": None}
    if format == "GIF":
        # The encoder stores only what differs from a frame that stays (1). A frame must be cleared
        # (2) where the next one is more transparent.
        disposals = [
            2 if ImageChops.subtract(opacity, following).getbbox() else 1
            for opacity, following in zip(opacities, opacities[1:] + opacities[:1], strict=True)
        ]
        return image, options | {"disposal": disposals}
    has_fallback = bool(image.info.get("default_image"))  # a first image outside the animation
    options |= {"default_image": has_fallback, "duration": durations[has_fallback:]}
    return frames[0], options | {"append_images": frames[1:], "disposal": 0, "blend": 0}


if __name__ == "__main__":
    main()
