"""Colors and their contrast, as WCAG 2.2 defines it (https://www.w3.org/TR/WCAG22/)."""

import re

MIN_CONTRAST = 4.5  # of text, level AA
# As the style sheet has them: what is behind text that has the accent color.
LIGHT, DARK = "#f3f3ee", "#1e2228"
COLOR = r"#[0-9a-f]{6}"


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colors such as `#204f95`, from 1 to 21."""
    darker, lighter = sorted(map(_luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


def on_dark(color: str) -> str:
    """Return a color that can be read on a dark page: mixed with as much white as this takes."""
    for tenths in range(11):
        mixed = _mix(color, tenths / 10)
        if contrast(mixed, DARK) >= MIN_CONTRAST:
            return mixed
    raise AssertionError("White can be read on a dark page.")


def _luminance(color: str) -> float:
    red, green, blue = (_linear(part / 255) for part in _parts(color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def _mix(color: str, white: float) -> str:
    mixed = (round(part + (255 - part) * white) for part in _parts(color))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _parts(color: str) -> list[int]:
    return [int(part, 16) for part in re.findall("[0-9a-f]{2}", color)]
