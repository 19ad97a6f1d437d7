"""Places to cut a text."""

import pytest

from posting.graphemes import last_boundary


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
