"""Decode an untrusted image with Pillow and encode it again, in a process with hard limits.

`posting.imaging` runs this file by its path, one process per image: decoders have holes, and limits
on memory and time bound them all. It imports only Pillow and the standard library, so that it
starts in a tenth of a second.
"""

import copy  # noqa: F401 - Pillow imports this lazily, when no file can be opened any more
import json
import os
import resource
import sys
import warnings
from collections.abc import Iterator
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
NICENESS = 10  # requests come first

FORMATS = [
    str(kind.format)
    for kind in (PngImagePlugin.PngImageFile, JpegImageFile, WebPImageFile, GifImageFile)
]
MAX_PIXELS = 25_000_000
MAX_SIDE = 16_384

# Encoders of animations keep several frames, or all of them, in memory.
MAX_FRAMES = 1000
MAX_FRAME_PIXELS = 9_000_000
MAX_ANIMATION_PIXELS = 40_000_000

# A lossless WebP needs 25 bytes a pixel to encode, so larger ones are encoded with a small loss.
MAX_LOSSLESS_PIXELS = 8_000_000

# Segments that cost time whenever they occur: more than any camera or editor writes. In the
# compressed data of a JPEG, FF is never followed by DA.
MAX_SEGMENTS = {
    b"\xff\xd8\xff": {b"\xff\xda": 500, b"Exif\0\0": 100},
    b"\x89PNG\r\n\x1a\n": {b"iCCP": 10},
}

# Encoder options for a second try when the first is too large.
SMALLER: dict[str, dict[str, Any]] = {
    "JPEG": {"optimize": True, "progressive": True},
    "PNG": {"optimize": True},
    "WEBP": {"quality": 50, "lossless": False},
    "GIF": {"optimize": True},
}

Image.preinit()  # likewise

# Pillow checks these when it opens a file and at each frame of it.
Image.MAX_IMAGE_PIXELS = MAX_PIXELS
PngImagePlugin.MAX_TEXT_MEMORY = 4 * 2**20
warnings.simplefilter("error", Image.DecompressionBombWarning)
warnings.filterwarnings("ignore", category=UserWarning, module="PIL")  # about flaws it tolerates
_TooManyPixels = (Image.DecompressionBombWarning, Image.DecompressionBombError)

_SRGB = ImageCms.createProfile("sRGB")


class ImageError(ValueError):
    """A file that is not an acceptable image; the message says why."""


def main() -> None:
    """Read a file from stdin; write a line of JSON, and then the new file, to stdout."""
    limit_resources()
    try:
        described, data = reencode(sys.stdin.buffer.read(), max_bytes=int(sys.argv[1]))
    except ImageError as error:
        described, data = {"error": str(error)}, b""
    sys.stdout.buffer.write(json.dumps(described).encode() + b"\n" + data)


def limit_resources() -> None:
    """Bound memory and CPU time, and forbid new files, sockets and processes."""
    with suppress(OSError):  # which a system may forbid
        os.nice(NICENESS)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")  # the kernel ends this process first when memory runs out
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS + 1))
    for kind in ("CORE", "FSIZE", "NPROC", "NOFILE"):
        resource.setrlimit(getattr(resource, f"RLIMIT_{kind}"), (0, 0))


def reencode(data: bytes, *, max_bytes: int) -> tuple[dict[str, Any], bytes]:
    """Return what an image is (`media_type`, `width` and `height`), and its new encoding.

    The format stays; metadata goes; a still image is turned upright and converted to sRGB.

    Errors: ImageError.
    """
    for magic, limits in MAX_SEGMENTS.items():
        if data.startswith(magic) and any(data.count(part) > n for part, n in limits.items()):
            raise ImageError("Cannot be decoded: it has too many segments of one kind.")
    try:
        image, form, options = _decode(data)
        encoded = _encode(image, form, options)
        if len(encoded) > max_bytes:
            encoded = _encode(image, form, _coarser(options) | SMALLER[form])
    except _TooManyPixels:
        raise ImageError(f"Must have at most {MAX_PIXELS:,} pixels.") from None
    except UnidentifiedImageError:
        raise ImageError("Must be a PNG, JPEG, WebP or GIF image.") from None
    except MemoryError:
        raise ImageError("Cannot be decoded: it needs too much memory.") from None
    except ImageError:
        raise
    except Exception as error:  # decoders raise nearly anything for a damaged file
        raise ImageError("Cannot be decoded: it is damaged.") from error
    if len(encoded) > max_bytes:
        raise ImageError(f"Has more than {max_bytes:,} bytes when it is encoded again.")
    described = {"media_type": Image.MIME[form], "width": image.width, "height": image.height}
    return described, encoded


def _decode(data: bytes) -> tuple[Any, str, dict[str, Any]]:
    """Return an image, its format, and the options to encode it with."""
    image: Any = Image.open(BytesIO(data), formats=FORMATS)
    if max(image.size) > MAX_SIDE:
        raise ImageError(f"Must be at most {MAX_SIDE:,} pixels wide and high.")
    # Pillow calls a JPEG with further images behind it MPO; telephones make them.
    form = "JPEG" if image.format == MpoImagePlugin.MpoImageFile.format else image.format
    options = _similar_options(image, form, data)
    if form != "JPEG" and image.is_animated:
        image, animation_options = _animation(image, form)
        return image, form, options | animation_options
    if form == "PNG":
        _scale_transparency(image, bits=data[24])
    image = _upright(image)  # from here on its decoder's memory is free
    image = _in_srgb(image)
    image.info = {name: image.info[name] for name in {"transparency"} & image.info.keys()}
    return image, form, options


def _encode(image: Any, form: str, options: dict[str, Any]) -> bytes:
    out = BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def _coarser(options: dict[str, Any]) -> dict[str, Any]:
    """Return encoder options with larger quantization steps, if there are any (JPEG)."""
    tables = options.get("qtables", ())
    coarser = [[min(255, step + step // 4) for step in table] for table in tables]
    return options | ({"qtables": coarser} if coarser else {})


def _similar_options(image: Any, form: str, data: bytes) -> dict[str, Any]:
    """Return encoder options that keep quality and size close to the original."""
    if form == "JPEG":
        tables = [image.quantization[table] for _, _, _, table in image.layer[:3]]
        return {"qtables": tables, "subsampling": get_sampling(image)}
    if form == "WEBP":
        small = image.width * image.height * image.n_frames <= MAX_LOSSLESS_PIXELS
        if small:
            return {"method": 2, "quality": 85, "lossless": _is_lossless(data)}
        return {"method": 0, "quality": 85, "alpha_quality": 10}
    return {}


def _is_lossless(webp: bytes) -> bool:
    """Return whether the first frame of a WebP is lossless, by its chunks (RFC 9649, section 2)."""
    place = 12
    while (name := webp[place : place + 4]) not in {b"VP8L", b"VP8 ", b"ALPH", b""}:
        size = int.from_bytes(webp[place + 4 : place + 8], "little")
        place += 8 + (16 if name == b"ANMF" else size + size % 2)  # a frame's chunks are inside it
    return name == b"VP8L"


def _scale_transparency(image: Any, *, bits: int) -> None:
    """Scale the transparent color of a PNG to 8 bits, as Pillow scales all others."""
    key = image.info.get("transparency")
    if image.mode == "L" and isinstance(key, int):
        image.info["transparency"] = key * 255 // (2**bits - 1)
    elif image.mode == "RGB" and key and bits == 16:
        image.info["transparency"] = tuple(part >> 8 for part in key)


def _upright(image: Any) -> Any:
    image.load()
    try:
        return ImageOps.exif_transpose(image)
    except MemoryError:
        raise
    except Exception:  # unreadable metadata turns nothing
        return image.copy()


def _in_srgb(image: Any) -> Any:
    """Convert the image to sRGB; without a usable profile it is taken to be in sRGB already."""
    profile = image.info.get("icc_profile")
    if profile and _has_processing_elements(profile):
        profile = None
    if profile and image.mode == "P":
        return _with_palette_in_srgb(image, profile)
    if profile and "transparency" in image.info:
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    if profile and image.mode in {"RGB", "RGBA", "CMYK"}:
        mode = "RGBA" if image.mode == "RGBA" else "RGB"
        with suppress(ImageCms.PyCMSError):
            return ImageCms.profileToProfile(image, BytesIO(profile), _SRGB, outputMode=mode)
    return image.convert("RGB") if image.mode == "CMYK" else image


def _with_palette_in_srgb(image: Any, profile: bytes) -> Any:
    """Convert the colors of a palette, so that the image keeps one byte a pixel."""
    colors = bytes(image.getpalette("RGB"))
    palette = Image.frombytes("RGB", (len(colors) // 3, 1), colors)
    with suppress(ImageCms.PyCMSError):
        converted: Any = ImageCms.profileToProfile(palette, BytesIO(profile), _SRGB)
        image.putpalette(converted.tobytes())
    return image


def _has_processing_elements(profile: bytes) -> bool:
    """Return whether an ICC profile has a D2B or B2D tag (ICC.1:2022, sections 7.3 and 9.2).

    Their elements may overlap, so that a few bytes cost minutes. Cameras do not write them.
    """
    return any(tag[:3] in {b"D2B", b"B2D"} for tag in _profile_tags(profile))


def _profile_tags(profile: bytes) -> Iterator[bytes]:
    count = int.from_bytes(profile[128:132], "big")
    for place in range(132, min(132 + 12 * count, len(profile)), 12):
        yield profile[place : place + 4]


def _animation(image: Any, form: str) -> tuple[Any, dict[str, Any]]:
    """Return an animation, and the encoder options that keep it as it looks.

    Pillow returns each frame as it is finally seen, however the file composes it.
    """
    pixels = image.width * image.height
    if (
        image.n_frames > MAX_FRAMES
        or pixels > MAX_FRAME_PIXELS
        or pixels * image.n_frames > MAX_ANIMATION_PIXELS
    ):
        raise ImageError(
            f"Must have, as an animation, at most {MAX_FRAMES:,} frames, {MAX_FRAME_PIXELS:,} "
            f"pixels in one and {MAX_ANIMATION_PIXELS:,} in all."
        )
    size, frames, durations, opacities = image.size, [], [], []
    for frame in ImageSequence.Iterator(image):
        if frame.size != size:  # a GIF may grow, and its memory would have no limit
            raise ImageError("Must have no frame that is larger than the image.")
        frame.load()
        durations.append(frame.info.get("duration", 0))
        if form == "GIF":
            opacities.append(frame.convert("RGBA").getchannel("A"))
        if form == "PNG":  # its encoder loses frames with a palette that are still in a file
            frames.append(frame.copy())
    image.seek(0)
    kept = {"save_all": True, "duration": durations}
    kept |= {name: image.info[name] for name in {"loop"} & image.info.keys()}
    if form == "WEBP":
        return image, kept | {"method": 0, "kmax": 0}
    kept |= {"comment": b"", "icc_profile": None}
    if form == "GIF":
        return image, kept | {"disposal": _disposals(opacities)}
    has_fallback = bool(image.info.get("default_image"))  # a first image outside the animation
    kept |= {"default_image": has_fallback, "duration": durations[has_fallback:]}
    return frames[0], kept | {"append_images": frames[1:], "disposal": 0, "blend": 0}


def _disposals(opacities: list[Any]) -> list[int]:
    """Return for each frame of a GIF whether it is cleared (2) or stays under the next one (1).

    Only a frame that stays can be left out of the next one, and only a cleared one can be seen
    through.
    """
    following = opacities[1:] + opacities[:1]
    return [
        2 if ImageChops.subtract(opacity, after).getbbox() else 1
        for opacity, after in zip(opacities, following, strict=True)
    ]


if __name__ == "__main__":
    main()
