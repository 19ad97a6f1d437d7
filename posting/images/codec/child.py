"""Decode an untrusted image with Pillow and encode it again, in a process with hard limits.

`posting.images.codec` runs this file by its path, one process per image, because image decoders
have vulnerabilities. It imports only Pillow and the standard library, so that it starts in a tenth
of a second.
"""

import copy  # noqa: F401 - Pillow imports it lazily, which fails once no file can be opened
import json
import os
import resource
import sys
import warnings
from contextlib import suppress
from io import BytesIO
from typing import Any

from PIL import (
    Image,
    ImageChops,
    ImageCms,
    ImageOps,
    ImageSequence,
    MpoImagePlugin,
    PngImagePlugin,
    UnidentifiedImageError,
)
from PIL.GifImagePlugin import GifImageFile
from PIL.JpegImagePlugin import JpegImageFile, get_sampling
from PIL.WebPImagePlugin import WebPImageFile

MAX_MEMORY = 768 * 2**20
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

# Each of these segments costs time. The limits are higher than any camera or editor needs. The
# compressed data of a JPEG never contains FF DA.
MAX_SEGMENTS = {
    b"\xff\xd8\xff": {b"\xff\xda": 500, b"Exif\0\0": 100},
    b"\x89PNG\r\n\x1a\n": {b"iCCP": 10},
}

# Encoder options for a second attempt when the first result is too large.
SMALLER: dict[str, dict[str, Any]] = {
    "JPEG": {"optimize": True, "progressive": True},
    "PNG": {"optimize": True},
    "WEBP": {"quality": 50, "lossless": False},
    "GIF": {"optimize": True},
}

# The longest side and the quality of a thumbnail, in the order in which they are tried. With the
# last, any image has less than 20 KB.
THUMBNAIL_TRIES = ((320, 75), (320, 50), (320, 25), (200, 25), (100, 0))

Image.preinit()  # imports plugins, which also fails once no file can be opened

# Pillow checks these limits when it opens a file and again for each frame.
Image.MAX_IMAGE_PIXELS = MAX_PIXELS
PngImagePlugin.MAX_TEXT_MEMORY = 4 * 2**20
warnings.simplefilter("error", Image.DecompressionBombWarning)
warnings.filterwarnings("ignore", category=UserWarning, module="PIL")  # tolerated defects
_TooManyPixels = (Image.DecompressionBombWarning, Image.DecompressionBombError)

_SRGB = ImageCms.createProfile("sRGB")


class ImageError(Exception):
    """The file is not an acceptable image; the message says why."""


def main() -> None:
    """Read a file from stdin; write a line of JSON, the thumbnail and the new file to stdout.

    The arguments are the maximum sizes of the new file and of the thumbnail. What has the size 0 is
    not made. The former version, which serves until its restart, knows no thumbnails.
    """
    limit_resources()
    max_bytes, max_thumbnail, *_ = (*map(int, sys.argv[1:]), 0)
    try:
        properties, *files = reencode(
            sys.stdin.buffer.read(), max_bytes=max_bytes, max_thumbnail=max_thumbnail
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
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS + 1))
    for name in ("CORE", "FSIZE", "NPROC", "NOFILE"):
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (0, 0))


def reencode(
    data: bytes, *, max_bytes: int, max_thumbnail: int
) -> tuple[dict[str, Any], bytes, bytes]:
    """Return the properties of an image, its thumbnail, and its new encoding.

    The format stays the same and metadata is removed. A still image is turned upright and converted
    to sRGB. What has a maximum size of 0 is not made and is empty.

    Raise ImageError.
    """
    for signature, limits in MAX_SEGMENTS.items():
        if data.startswith(signature) and any(data.count(part) > n for part, n in limits.items()):
            raise ImageError("Cannot be decoded: it has too many segments of one kind.")
    try:
        image, format, options = _decode(data)
        properties = {
            "media_type": Image.MIME[format],
            "width": image.width,
            "height": image.height,
        }
        encoded = thumbnail = b""
        if max_bytes:
            encoded = _encode(image, format, options, max_bytes)
        if max_thumbnail:  # now, since converting a GIF changes the palette that is encoded
            image.seek(0)
            (width, height), thumbnail = make_thumbnail(image, max_thumbnail)
            properties["thumbnail"] = {"width": width, "height": height, "bytes": len(thumbnail)}
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
    return properties, thumbnail, encoded


def make_thumbnail(image: Any, max_bytes: int) -> tuple[tuple[int, int], bytes]:
    """Return the size of a small rendition of an image, and its encoding as WebP.

    Of an animation, this is the first frame.
    """
    if image.mode == "I;16":  # `convert` would keep only the darkest 256 shades
        image = image.point(lambda shade: shade / 256).convert("L")
    mode = "RGBA" if image.has_transparency_data else "RGB"
    small = image if image.mode == mode else image.convert(mode)
    for side, quality in THUMBNAIL_TRIES:
        scale = min(1, side / max(small.size))
        size = tuple(max(1, round(scale * length)) for length in small.size)
        small = small.resize(size, Image.Resampling.LANCZOS, reducing_gap=3)
        small.info = {}  # the metadata of an animation
        encoded = _save(small, "WEBP", {"quality": quality, "alpha_quality": quality})
        if len(encoded) <= max_bytes:
            break
    return small.size, encoded


def _decode(data: bytes) -> tuple[Any, str, dict[str, Any]]:
    """Return an image, its format, and the options to encode it with."""
    image: Any = Image.open(BytesIO(data), formats=FORMATS)
    if max(image.size) > MAX_SIDE:
        raise ImageError(f"Must be at most {MAX_SIDE:,} pixels wide and high.")
    # Pillow calls a JPEG with more images appended to it MPO; phones write them.
    is_mpo = image.format == MpoImagePlugin.MpoImageFile.format
    format = "JPEG" if is_mpo else image.format
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
    encoded = _save(image, format, options)
    if len(encoded) > max_bytes:
        if tables := options.get("qtables"):  # a JPEG: quantize more coarsely
            coarser = [[min(255, step + step // 4) for step in table] for table in tables]
            options = options | {"qtables": coarser}
        encoded = _save(image, format, options | SMALLER[format])
    if len(encoded) > max_bytes:
        raise ImageError(f"Has more than {max_bytes:,} bytes after it is encoded again.")
    return encoded


def _save(image: Any, format: str, options: dict[str, Any]) -> bytes:
    out = BytesIO()
    image.save(out, format, **options)
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
    if profile and _has_processing_elements(profile):
        profile = None
    if profile and image.mode == "P":  # convert the palette, so that a pixel stays one byte
        colors = bytes(image.getpalette("RGB"))
        palette = Image.frombytes("RGB", (len(colors) // 3, 1), colors)
        with suppress(ImageCms.PyCMSError):
            converted: Any = ImageCms.profileToProfile(palette, BytesIO(profile), _SRGB)
            image.putpalette(converted.tobytes())
        return image
    if profile and "transparency" in image.info:
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    if profile and image.mode in {"RGB", "RGBA", "CMYK"}:
        mode = "RGBA" if image.mode == "RGBA" else "RGB"
        with suppress(ImageCms.PyCMSError):
            return ImageCms.profileToProfile(image, BytesIO(profile), _SRGB, outputMode=mode)
    return image.convert("RGB") if image.mode == "CMYK" else image


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
