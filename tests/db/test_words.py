"""Splitting of texts and queries into words."""

import pytest

from posting.db.words import (
    MAX_PREFIXES,
    MAX_WORD_LENGTH,
    MAX_WORDS,
    Term,
    find_words,
    parse_query,
    split_words,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("They weave algebra.", "they weave algebra"),
        ("STRASSE Straße", "strasse strasse"),
        ("Émile naïve Ångström Żółć", "emile naive angstrom zołc"),
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
    ],
)
def test_words_of_a_text(text, words):
    assert split_words(text) == words.split()


def test_long_words_are_cut_alike_in_texts_and_queries():
    assert split_words("a" * 1000) == ["a" * MAX_WORD_LENGTH]
    assert parse_query("A" * 200) == [Term(("a" * MAX_WORD_LENGTH,))]


def test_texts_that_grow_are_bounded():
    text = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 100_000  # 18 characters each
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
    ],
)
def test_words_to_highlight(text, query, words):
    spans = find_words(text, parse_query(query))
    assert [text[start:end] for start, end in spans] == words
