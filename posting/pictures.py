"""Pictures made safe to hand out: told by content, bounded, and encoded anew without metadata."""

import ctypes
import warnings
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from threading import BoundedSemaphore
from typing import Any

from PIL import (
    Image,
    ImageChops,
    ImageCms,
    ImageOps,
    ImageSequence,
    PngImagePlugin,
    UnidentifiedImageError,
)
from PIL.GifImagePlugin import GifImageFile
from PIL.JpegImagePlugin import JpegImageFile, get_sampling
from PIL.WebPImagePlugin import WebPImageFile

FORMATS = [
    str(kind.format)
    for kind in (PngImagePlugin.PngImageFile, JpegImageFile, WebPImageFile, GifImageFile)
]
MOST_PIXELS = 25_000_000

# Writers of animations keep several frames, or all of them, in memory.
MOST_FRAMES = 1000
MOST_PIXELS_MOVING = 9_000_000
MOST_PIXELS_MOVING_IN_ALL = 40_000_000

# WebP's encoder takes 25 bytes a pixel to spare all detail, so larger pictures lose a little.
MOST_PIXELS_IN_DETAIL = 8_000_000

# A file that is small by a clever encoding may not fill the database by a plain one.
MOST_GROWTH = 3
SMALL = 5 * 2**20

# What costs time wherever it is found again: scans of a JPEG, its EXIF segments, profiles of a PNG.
# More than cameras and editors write, and more than chance does in any file.
MOST_PARTS = {b"\xff\xda": 500, b"Exif\0\0": 100, b"iCCP": 10}

# Pillow asks these before it decodes, when it opens a file and at each frame of it.
Image.MAX_IMAGE_PIXELS = MOST_PIXELS
PngImagePlugin.MAX_TEXT_MEMORY = 4 * 2**20
warnings.simplefilter("error", Image.DecompressionBombWarning)
warnings.filterwarnings("ignore", category=UserWarning, module="PIL")  # of what it puts up with
_TooLarge = (Image.DecompressionBombWarning, Image.DecompressionBombError)

# One picture is decoded at a time, since it may take 400 MB and a core for seconds. Those who wait
# for their turn occupy a thread each, and half of the threads must remain for other requests.
MOST_WAITING = 4  # the one whose turn it is included
_turn = BoundedSemaphore(1)
_queue = BoundedSemaphore(MOST_WAITING)

# glibc would keep much of that for each thread that ever decoded; memory in maps of its own goes
# back when it is freed. See mallopt(3).
_M_MMAP_THRESHOLD, _MAPPED_FROM = -3, 256 * 2**10
if hasattr(_libc := ctypes.CDLL(None), "mallopt"):
    _libc.mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM)

_SRGB = ImageCms.createProfile("sRGB")


class PictureError(ValueError):
    """A file that is no picture, or none that this service takes; the message says why."""


class BusyError(Exception):
    """Too many pictures are waiting to be decoded."""


@dataclass(frozen=True)
class Picture:
    """A picture encoded anew in its format, without metadata; a still one upright and in sRGB."""

    media_type: str
    width: int
    height: int
    data: bytes


def clean(data: bytes) -> Picture:
    """Decode a file, and encode what is to be seen of it.

    Takes seconds for 25 megapixels: hold no transaction meanwhile. Errors: PictureError, BusyError.
    """
    if not _queue.acquire(blocking=False):
        raise BusyError
    try:
        with _turn:
            return _clean(data)
    finally:
        _queue.release()


def _clean(data: bytes) -> Picture:
    if any(data.count(part) > most for part, most in MOST_PARTS.items()):
        raise PictureError("Cannot be decoded: it has too many parts of one kind.")
    try:
        image: Any = Image.open(BytesIO(data), formats=FORMATS)
        # MPO is what Pillow calls a JPEG with more pictures behind, as telephones make them.
        form = "JPEG" if image.format == "MPO" else image.format
        options = _like_before(image, form, data)
        if form != "JPEG" and image.is_animated:
            image, moving = _moving(image, form)
            options |= moving
        else:
            if form == "PNG":
                _scale_key(image, bits=data[24])
            image = _upright(image)  # from here on its decoder's memory is free
            image = _in_srgb(image)
            image.info = {name: image.info[name] for name in {"transparency"} & image.info.keys()}
        out = BytesIO()
        image.save(out, form, **options)
    except _TooLarge:
        raise PictureError(f"Must have at most {MOST_PIXELS:,} pixels.") from None
    except UnidentifiedImageError:
        raise PictureError("Must be a PNG, JPEG, WebP or GIF picture.") from None
    except PictureError:
        raise
    except Exception as error:  # a broken file makes decoders raise nearly anything
        raise PictureError("Cannot be decoded: it is damaged.") from error
    if out.tell() > max(MOST_GROWTH * len(data), SMALL):
        raise PictureError("Becomes too large when it is encoded anew.")
    return Picture(Image.MIME[form], image.width, image.height, out.getvalue())


def _like_before(image: Any, form: str, data: bytes) -> dict[str, Any]:
    """Return the encoder's options for a picture of the same looks and about the same size."""
    if form == "JPEG":
        tables = [image.quantization[table] for _, _, _, table in image.layer[:3]]
        return {"qtables": tables, "subsampling": get_sampling(image)}
    if form == "WEBP":
        detailed = image.width * image.height * image.n_frames <= MOST_PIXELS_IN_DETAIL
        options = {"method": 2, "quality": 85, "lossless": detailed and _is_lossless(data)}
        return options | ({} if detailed else {"alpha_quality": 10})
    return {}


def _is_lossless(webp: bytes) -> bool:
    """Tell how the first picture of a WebP is coded, by its chunks (RFC 9649, section 2)."""
    place = 12
    while (name := webp[place : place + 4]) not in {b"VP8L", b"VP8 ", b"ALPH", b""}:
        size = int.from_bytes(webp[place + 4 : place + 8], "little")
        place += 8 + (16 if name == b"ANMF" else size + size % 2)  # a frame's chunks are inside it
    return name == b"VP8L"


def _scale_key(image: Any, *, bits: int) -> None:
    """Bring the colour that a PNG calls transparent to 8 bits, as Pillow does with all others."""
    key = image.info.get("transparency")
    if image.mode == "L" and isinstance(key, int):
        image.info["transparency"] = key * 255 // (2**bits - 1)
    elif image.mode == "RGB" and key and bits == 16:
        image.info["transparency"] = tuple(part >> 8 for part in key)


def _upright(image: Any) -> Any:
    image.load()
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # metadata that cannot be read turns nothing
        return image.copy()


def _in_srgb(image: Any) -> Any:
    """Return the picture in the colours that a screen shows when no profile says otherwise."""
    profile = image.info.get("icc_profile")
    if profile and (image.mode == "P" or "transparency" in image.info):
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    if profile and image.mode in {"RGB", "RGBA", "CMYK"}:
        mode = "RGBA" if image.mode == "RGBA" else "RGB"
        with suppress(ImageCms.PyCMSError):
            return ImageCms.profileToProfile(image, BytesIO(profile), _SRGB, outputMode=mode)
    return image.convert("RGB") if image.mode == "CMYK" else image


def _moving(image: Any, form: str) -> tuple[Any, dict[str, Any]]:
    """Return an animation, and the encoder's options that keep it as it is and nothing else.

    Pillow hands out each frame as it looks in the end, whatever the file makes it of.
    """
    pixels = image.width * image.height
    if (
        image.n_frames > MOST_FRAMES
        or pixels > MOST_PIXELS_MOVING
        or pixels * image.n_frames > MOST_PIXELS_MOVING_IN_ALL
    ):
        raise PictureError(
            f"Must have, as an animation, at most {MOST_FRAMES:,} frames, {MOST_PIXELS_MOVING:,} "
            f"pixels in one and {MOST_PIXELS_MOVING_IN_ALL:,} in all."
        )
    size, frames, durations, opacities = image.size, [], [], []
    for frame in ImageSequence.Iterator(image):
        if frame.size != size:  # a GIF's may, and what it takes would have no limit
            raise PictureError("Must have no frame that is larger than the picture.")
        frame.load()
        durations.append(frame.info.get("duration", 0))
        if form == "GIF":
            opacities.append(frame.convert("RGBA").getchannel("A"))
        if form == "PNG":  # whose writer loses the frames of a palette's picture that is a file
            frames.append(frame.copy())
    image.seek(0)
    kept = {"save_all": True, "duration": durations}
    kept |= {name: image.info[name] for name in {"loop"} & image.info.keys()}
    if form == "WEBP":
        return image, kept
    kept |= {"comment": b"", "icc_profile": None}
    if form == "GIF":
        return image, kept | {"disposal": _disposals(opacities)}
    for_others = bool(image.info.get("default_image"))  # a first picture that does not move
    kept |= {"default_image": for_others, "duration": durations[for_others:]}
    return frames[0], kept | {"append_images": frames[1:], "disposal": 0, "blend": 0}


def _disposals(opacities: list[Any]) -> list[int]:
    """Return of each frame of a GIF if it must be cleared (2), or may stay under the next one (1).

    Only what stays can be left out of the next frame, and only what is cleared can be seen through.
    """
    following = opacities[1:] + opacities[:1]
    return [
        2 if ImageChops.subtract(opacity, after).getbbox() else 1
        for opacity, after in zip(opacities, following, strict=True)
    ]
