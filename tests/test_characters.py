"""Visible and invisible characters, and the direction of writing."""

import re
import sys
import unicodedata

import pytest

from posting.characters import has_visible, last_boundary, leaves_direction_open
from posting.web.schemas import NOT_BLANK_PATTERN, ONE_LINE_PATTERN
from tests.helpers.texts import INVISIBLE

# Default_Ignorable_Code_Point of DerivedCoreProperties.txt, Unicode 16.
DEFAULT_IGNORABLE = [
    *(0x00AD, 0x034F, 0x061C, 0x3164, 0xFEFF, 0xFFA0),
    *(*range(0x115F, 0x1161), *range(0x17B4, 0x17B6), *range(0x180B, 0x1810)),
    *(*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)),
    *(*range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4)),
    *(*range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)),
]


@pytest.mark.parametrize("text", INVISIBLE)
def test_a_text_of_these_is_invisible(text):
    assert not has_visible(text)


def test_what_unicode_calls_ignorable_is_invisible():
    assert [hex(code) for code in DEFAULT_IGNORABLE if has_visible(chr(code))] == []


@pytest.mark.parametrize(
    "text",
    [
        *("a", "1", ".", "-", "é", "e\u0301", "字", "ㄱ", "\u1100", "⠁", "𓀀", "🧶", "☐", "�"),
        *(
            "\u0645\u06cc\u200c\u062e",
            "👩\u200d💻",
            "❤\ufe0f",
            "1\ufe0f\u20e3",
            "\U0001f3f4\U000e0067\U000e007f",
        ),
        "\U0001faea",  # an emoji of Unicode 17
        "\U000323b0",  # an ideograph of Unicode 17
        *("\u3164a", "\u202ea", "\u0301", "\u20dd"),
    ],
)
def test_a_text_with_a_letter_or_a_symbol_is_visible(text):
    assert has_visible(text)
    assert re.search(NOT_BLANK_PATTERN, text)
    assert re.search(ONE_LINE_PATTERN, text)


def test_every_letter_and_number_is_visible():
    categories = {"Lu", "Ll", "Lt", "Nd", "Nl", "No"}
    characters = map(chr, range(sys.maxunicode))
    assert all(has_visible(each) for each in characters if unicodedata.category(each) in categories)


def test_the_patterns_of_the_document_refuse_no_visible_character():
    characters = [chr(code) for code in range(sys.maxunicode) if not 0xD800 <= code < 0xE000]
    is_refused = re.compile(NOT_BLANK_PATTERN).search
    assert [c for c in characters if has_visible(c) and not is_refused(c)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc \u05d0\u200f", False),
        *((f"a{opening}b", True) for opening in "\u202a\u202b\u202d\u202e\u2066\u2067\u2068"),
        *((f"a{opening}b\u202c", False) for opening in "\u202a\u202b\u202d\u202e"),
        *((f"a{opening}b\u2069", False) for opening in "\u2066\u2067\u2068"),
        ("\u202ea\u2069", True),
        ("\u2067a\u202c", True),
        ("\u202e\u202ea\u202c", True),
        ("\u2066\u202ea\u2069", False),  # the end of an isolate is the end of all in it
        ("\u202e\u2066a\u202c\u2069", True),
        ("\u202c\u2069a", False),
        ("\u202ca\u202e", True),
    ],
    ids=ascii,
)
def test_a_change_of_direction_has_an_end(text, expected):
    assert leaves_direction_open(text) is expected


@pytest.mark.parametrize(
    "character",
    [
        "e\u0301",
        "a\u0323\u0302",
        "☝\ufe0f",
        "👍\U0001f3fd",
        "👩\U0001f3fd\u200d🚀",
        "👨\u200d👩\u200d👧\u200d👦",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "🇩🇪",
        "न्दि",
        "ক্ষ",
        "กำ",
        "ｶﾞ",
        "か\u3099",
        "\u1112\u1161\u11ab",
        "葛\U000e0100",
        "می\u200c"[1:],
    ],
    ids=ascii,
)
def test_a_text_is_cut_before_or_after_a_character(character):
    text = character * 3
    for place in range(1, len(text)):
        assert last_boundary(text, place) == place // len(character) * len(character)


@pytest.mark.parametrize("text", ["abc", "布布布", "한국어", "🧵🧵🧵", "कमल"])
def test_other_characters_are_single(text):
    assert [last_boundary(text, place) for place in range(len(text))] == [*range(len(text))]


def test_a_character_that_is_longer_than_people_write_is_cut():
    assert last_boundary("x" + "\u0301" * 300, 200) == 200
