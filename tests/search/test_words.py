"""Splitting of texts and queries into words."""

import sys
import unicodedata
from itertools import groupby
from unittest.mock import patch

import pytest

from posting.search.words import (
    MAX_NON_STARTERS,
    MAX_PREFIXES,
    MAX_WORD_LENGTH,
    MAX_WORDS,
    Term,
    find_words,
    parse_query,
    replace_word,
    similar_words,
    split_words,
    with_beginning,
)
from tests.helpers.hostile_texts import LIMIT

LONG_WHEN_FOLDED = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}"  # 18 characters


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("They weave algebra.", "they weave algebra"),
        ("STRASSE Straße", "strasse strasse"),
        ("Émile naïve Ångström Żółć", "emile naive angstrom zolc"),
        ("e\u0301mile", "emile"),
        ("ΛΌΓΟΣ λόγος", "λογοσ λογοσ"),
        ("İstanbul", "istanbul"),
        ("Йод мой", "иод мои"),
        ("don't e-mail a_b x²", "don t e mail a b x2"),
        ("\N{LATIN SMALL LIGATURE FI}ancée \N{FULLWIDTH LATIN CAPITAL LETTER A}bc", "fiancee abc"),
        ("co\u00adop\u200dera\ufefftion", "cooperation"),
        ("שָׁלוֹם مَرْحَبًا", "שלום مرحبا"),
        ("हिन्दी में", "हिन्दी में"),  # their vowels are no accents
        ("한국어 글", "한국어 글"),
        ("東京タワー", "東 京 タ ワ ー"),
        ("ガ か ｶﾞ", "ガ か ガ"),  # voiced is another character
        ("สวัสดี", "ส วั ส ดี"),
        ("東京2026年", "東 京 2026 年"),
        ("🧵 -- !? \0 \u2028", ""),
        ("\u0301 a", "a"),
        ("Łódź København cœur Đà Nẵng Þór Æsir", "lodz kobenhavn coeur da nang thor aesir"),
        ("kız Bəy Ħal Ŧ ƙarfe ɛyɔ Øyŋ ẞ", "kiz bey hal t karfe eyo oyn ss"),
        ("комп'ютер компʼютер комп’ютер", "комп ютер " * 3),
        ("Hawai\u02bbi", "hawai i"),
        ("Ёлка ґанок", "елка ганок"),
        ("مـــرحـبا NKO\u07fa", "مرحبا nko"),
        ("کتاب علی على مدرسة أحمد إحمد آب ٱب", "كتاب علي علي مدرسه احمد احمد اب اب"),
        ("ہے ھے ەي می\u200cروم", "هي هي هي ميروم"),
        ("ייִדיש װי ײַ", "יידיש ווי יי"),
        ("हूँ फ़िल्म", "हूं फिल्म"),
        ("١٢٣ ۴۵۶ १२३ ๒๕๖๙ ០១២ ９９ 1\ufe0f\u20e3", "123 456 123 2569 012 99 1"),
        ("ｶﾀｶﾅ ﾀﾞ", "カ タ カ ナ ダ"),
        ("葛\U000e0100飾 a\u034fb i\ufe20a\ufe21", "葛 飾 ab ia"),
        ("\u3164 \u115f", ""),
        ("LEGO™ Engine℠s Loom® ™", "lego engine s loom"),
        ("10½ ¾kg ⅟8 ↉", "10 1 2 3 4 kg 1 8 0 3"),
        ("№5 5㎏ ㍿ Ⓐb", "no5 5kg 株 式 会 社 ab"),
    ],
)
def test_words_of_a_text(text, words):
    assert split_words(text) == words.split()


def test_digits_of_all_scripts_are_the_same():
    characters = map(chr, range(sys.maxunicode + 1))
    digits = [each for each in characters if unicodedata.category(each) == "Nd"]
    assert len(digits) >= 650
    for digit in digits:
        assert split_words(f"x{digit}") == [f"x{unicodedata.decimal(digit)}"]


def test_long_words_are_cut_alike_in_texts_and_queries():
    assert split_words("a" * 1000) == ["a" * MAX_WORD_LENGTH]
    assert parse_query("A" * 200) == [Term(("a" * MAX_WORD_LENGTH,))]


def test_texts_that_grow_are_bounded():
    text = LONG_WHEN_FOLDED * 100_000
    assert sum(map(len, split_words(text))) <= 200_000


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("looms engines", [Term(("looms",)), Term(("engines",))]),
        ("looms Looms LOOMS", [Term(("looms",))]),
        ('"on looms" x', [Term(("on", "looms")), Term(("x",))]),
        ("weav*", [Term(("weav",), is_prefix=True)]),
        ("don't", [Term(("don", "t"))]),
        ("e-mai*", [Term(("e", "mai"), is_prefix=True)]),
        ("東京", [Term(("東", "京"))]),
        ("w*", [Term(("w",))]),  # too short for a beginning
        ('"weav*"', [Term(("weav",))]),  # a phrase has whole words
        ('"open phrase', [Term(("open",)), Term(("phrase",))]),
        ('a"b c"d', [Term(("a",)), Term(("b", "c")), Term(("d",))]),
        ("-a OR (b) ^e", [Term(("a",)), Term(("or",)), Term(("b",)), Term(("e",))]),
        ("near/2 c:d", [Term(("near", "2")), Term(("c", "d"))]),
        ("* \"\" '!' 🧵", []),
    ],
)  # fmt: skip
def test_terms_of_a_query(query, terms):
    assert parse_query(query) == terms


def test_a_query_has_few_words():
    words = [f"w{number}" for number in range(30)]
    assert parse_query(" ".join(words)) == [Term((word,)) for word in words[:MAX_WORDS]]
    phrase = f'"{" ".join(words)}" x'
    assert parse_query(phrase) == [Term(tuple(words[:MAX_WORDS]))]


def test_a_query_has_few_prefixes():
    terms = parse_query("aa* bb* cc* dd* ee*")
    assert [term.is_prefix for term in terms] == [True] * MAX_PREFIXES + [False] * 2


@pytest.mark.parametrize(
    ("text", "query", "words"),
    [
        ("Émile and the emiles", "emile", ["Émile"]),
        ("Émile and the emiles", "emil*", ["Émile", "emiles"]),
        ("On looms, on engines", '"on looms"', ["On", "looms", "on"]),
        ("東京タワー", "京都", ["京"]),
        ("Nothing", "else", []),
        ("In Łódź, Łódźa", "lodz", ["Łódź"]),
        ("cœur", "COEUR", ["cœur"]),
        ("компʼютер", "комп'ютер", ["комп", "ютер"]),
        ("مـرحبا (می\u200cروم)", "مرحبا میروم", ["مـرحبا", "می\u200cروم"]),
        ("co\u00adop", "coop", ["co\u00adop"]),
        ("ปี ๒๕๖๙", "2569", ["๒๕๖๙"]),
        ("ｶﾞｶﾀ", "ガタ", ["ｶﾞ", "ﾀ"]),
        ("LEGO™, 10½kg", "lego 10 2", ["LEGO", "10½kg"]),
        ("№ 5㎏, a №7b", "no 5kg no7b", ["№", "5㎏", "№7b"]),
        ("ト㍿タ, a㍿", "株式", ["㍿", "a㍿"]),
    ],
)
def test_words_to_highlight(text, query, words):
    spans = list(find_words(text, parse_query(query)))
    assert [text[start:end] for start, end in spans] == words


def test_each_letter_digit_and_symbol_is_highlighted_by_its_words():
    ideographs, syllables = range(0x3400, 0xA000), range(0xAC00, 0xD7A4)  # so many of a kind
    codes = {*range(0x10000), *range(0x1F100, 0x1F300)} - {*ideographs} - {*syllables}
    for character in map(chr, sorted(codes)):
        if unicodedata.category(character)[0] not in "LNS":
            continue
        for word in set(split_words(character)):
            found = find_words(f"- {character} -", [Term((word,))])
            assert next(found, None), ascii(character)


@pytest.mark.parametrize("length", range(990, 1010))
def test_words_are_found_wherever_the_pieces_of_a_text_end(length):
    text = f"{'字' * length}lo\u0301oms e\u0301"
    assert list(find_words(text, parse_query("looms"))) == [(length, length + 6)]
    assert list(find_words(text, parse_query("lo loo oms s"))) == []


def test_words_are_found_at_the_end_of_a_long_text():
    words = [f"w{number % 8000}" for number in range(16_000)]  # ordinary texts repeat their words
    [(start, end)] = find_words(" ".join([*words, "Loom"]), parse_query("loom"))
    assert start > 90_000
    assert end == start + 4


@pytest.mark.parametrize("end", ["", LONG_WHEN_FOLDED * 30], ids=["many", "long"])
def test_a_text_with_very_many_different_words_is_searched_at_its_beginning(end):
    words = [f"{number}{end}" for number in range(16_000)]
    found = find_words(" ".join(["loom", *words])[:LIMIT] + " loom", parse_query("loom"))
    assert list(found) == [(0, 4)]


@pytest.fixture
def longest_row():
    """Return a function that returns the longest row of non-starters that was normalized."""
    rows, normalize = [0], unicodedata.normalize

    def measure(form, text):
        marks = map(unicodedata.combining, normalize("NFKD", text))
        rows.extend(sum(1 for _ in row) for is_mark, row in groupby(marks, key=bool) if is_mark)
        return normalize(form, text)

    with patch.object(unicodedata, "normalize", measure):
        yield lambda: max(rows)


@pytest.mark.parametrize(
    "marks",
    [
        "\u0300" * 60 + "\u0316" * 60,
        "\u0344" * 60,  # decomposes to two
        "\u0300\uff9e" * 60,  # a letter, but it decomposes to a mark
        "\u0300\u0f73" * 60,  # has no combining class
        ("\u094d" * 25 + "\u200d" + "\u093c" * 25 + "\u200d") * 9,  # invisible starters
        "\ufe20\U0001e8d0" * 60,
        "\u05b0\u05b1\u05ac" * 60,
    ],
)
def test_rows_of_non_starters_are_cut_before_they_are_normalized(marks, longest_row):
    assert split_words(f"a{marks} b")[-1] == "b"
    assert longest_row() <= 33


def test_all_non_starters_of_unicode_are_cut(longest_row):
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    starts = (unicodedata.normalize("NFKD", character)[0] for character in characters)
    for character, start in zip(characters, starts, strict=True):
        if unicodedata.combining(start):
            split_words(f"a{character * 60}")
    assert 20 < longest_row() <= 33


def test_marks_that_a_language_needs_are_kept():
    assert split_words("a" + "\u094d" * MAX_NON_STARTERS) == ["a" + "\u094d" * MAX_NON_STARTERS]
    assert split_words("©" * 50 + " ㎏" * 50 + " 🧵" * 50 + " a") == ["kg"] * 50 + ["a"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("weav", "weav*"),
        ("on weav", "on weav*"),
        ("Wéa", "Wéa*"),
        ("we", "we"),
        ("weav*", "weav*"),
        ("weav.", "weav."),
        ("हिन्दी", "हिन्दी*"),
        ("wea\u0301", "wea\u0301*"),
        ('"on loo"', '"on loo"'),
        ('x "on loo', 'x "on loo*'),
        ("東京", "東京"),
        ("", ""),
        ("!", "!"),
    ],
)
def test_the_last_word_of_a_query_may_be_a_beginning(query, expected):
    assert with_beginning(query) == expected


@pytest.mark.parametrize(
    ("word", "similar", "others"),
    [
        ("loom", "lom looom room loam olom looms loo", "loom molo rooms"),
        ("мост", "мот мостт рост мсот", "most 123"),
        ("שלום", "שלם שלוום", "shalom"),
    ],
)
def test_similar_words_differ_by_one_slip(word, similar, others):
    found = similar_words(word)
    assert not {*similar.split()} - found
    assert not {*others.split()} & found
    assert len(found) < 5_000


@pytest.mark.parametrize("word", ["abc", "x" * 17, "ж" * 17, "kжttel", "1234"])
def test_some_words_have_no_similar_words(word):
    assert similar_words(word) == set()


def test_there_are_not_too_many_similar_words():
    for letter in "aжաا한":
        assert len(similar_words(letter * 16)) < 5_000


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("a Kettel whistles", "a kettle whistles"),
        ('"my kettel" KÉTTEL', '"my kettle" kettle'),
        ("kettels", "kettels"),
    ],
)
def test_a_word_of_a_query_is_replaced_however_it_was_typed(query, expected):
    assert replace_word(query, "kettel", "kettle") == expected
