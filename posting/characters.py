"""Characters that people see, and places to cut a text between them (UAX #29)."""

import re
import unicodedata

# Ranges for pictures and ideographs, some of which only later versions of Unicode assign.
_may_be_assigned = re.compile(
    "[\U0001f000-\U0001fffd\U00020000-\U0002fffd\U00030000-\U0003fffd]"
).match
# What has the property Default_Ignorable_Code_Point (DerivedCoreProperties.txt of Unicode) in spite
# of its category: fillers of Hangul, and marks such as variation selectors. Then the blanks of
# Braille, hieroglyphs, Khitan and music, and the place of an object.
_is_blank = re.compile(
    "[\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
    "\u2800\U00013441\U00013442\U00016fe4\U0001d159\ufffc]"
).match
_END_OF_EMBEDDING, _END_OF_ISOLATE = "\u202c", "\u2069"
_CLOSERS = dict.fromkeys("\u202a\u202b\u202d\u202e", _END_OF_EMBEDDING) | dict.fromkeys(
    "\u2066\u2067\u2068", _END_OF_ISOLATE
)
_direction = re.compile("[\u202a-\u202e\u2066-\u2069]")
MAX_CHARACTER_LENGTH = 40  # code points of a character that people write, such as a family of emoji
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


def has_visible(text: str) -> bool:
    """Return whether a text has a character that people see.

    Controls, formats, separators, private and unassigned characters are invisible (the categories C
    and Z), and so is what Unicode calls ignorable, such as variation selectors. An accent without a
    letter is visible: fonts show it on a circle of dots.
    """
    return any(map(_is_visible, text))


def leaves_direction_open(text: str) -> bool:
    """Return whether a text changes the direction of writing, and does not change it back.

    The direction of the text that follows would change too (UAX #9): `U+202E`, the right-to-left
    override, writes it backwards.
    """
    closers = []  # of the changes that are open
    for character in _direction.findall(text):
        if character in _CLOSERS:
            closers.append(_CLOSERS[character])
        elif character == _END_OF_ISOLATE and character in closers:
            while closers.pop() != character:  # it also ends the embeddings within the isolate
                pass
        elif closers and closers[-1] == character:
            closers.pop()
    return bool(closers)


def _is_visible(character: str) -> bool:
    category = unicodedata.category(character)
    if category == "Cn":
        return _may_be_assigned(character) is not None
    return category[0] not in "CZ" and not _is_blank(character)


def last_boundary(text: str, end: int) -> int:
    """Return the last place up to `end` at which no character is cut in two.

    Return `end` if a character is longer than people write.
    """
    places = range(end, max(-1, end - MAX_CHARACTER_LENGTH), -1)
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
