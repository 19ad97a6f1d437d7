"""Places to cut a text: between characters as readers know them (UAX #29)."""

import re
import unicodedata

MAX_LENGTH = 40  # code points of a character that people write, such as a family of emoji
_JOINER = "\u200d"
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))  # two of them are a flag
_VIRAMA = 9  # the combining class of the signs that join consonants in Indic scripts
# What continues a character, beside combining marks: joiners, vowels of Thai and Lao, voicing marks
# of Japanese, vowels and finals of Hangul, skin tones, and tags of flags.
_continues = re.compile(
    "[\u200c\u200d\u0e33\u0eb3\uff9e\uff9f\u1160-\u11ff\ud7b0-\ud7ff\U0001f3fb-\U0001f3ff"
    "\U000e0020-\U000e007f]"
).match
_is_hangul_initial = re.compile("[\u1100-\u115f]").match
_follows_hangul_initial = re.compile("[\u1100-\u115f\uac00-\ud7a3]").match


def last_boundary(text: str, end: int) -> int:
    """Return the last place up to `end` at which no character is cut in two.

    Return `end` if a character is longer than people write.
    """
    places = range(end, max(-1, end - MAX_LENGTH), -1)
    return next((place for place in places if _is_boundary(text, place)), end)


def _is_boundary(text: str, place: int) -> bool:
    if not 0 < place < len(text):
        return True
    before, after = text[place - 1], text[place]
    if before == _JOINER or _continues(after) or unicodedata.category(after)[0] == "M":
        return False
    if unicodedata.combining(before) == _VIRAMA:
        return not after.isalpha()
    if _is_hangul_initial(before):
        return not _follows_hangul_initial(after)
    if before in _FLAG_LETTERS and after in _FLAG_LETTERS:
        return (place - len(text[:place].rstrip(_FLAG_LETTERS))) % 2 == 0
    return True
