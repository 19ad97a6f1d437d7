"""Words of texts and of search queries, which are the same on both databases.

A word is a run of letters and digits, without regard to case, accents and compatibility forms, as
Unicode defines them (UAX #15 and section 3.13 of the standard). In scripts that put no spaces
between words, such as Chinese and Thai, each character is a word.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

MAX_WORD_LENGTH = 64  # characters; the rest of a longer word does not count
MAX_NORMALIZED_LENGTH = 200_000  # characters of a text; Postgres indexes at most 1 MiB
MAX_PREFIXES = 3  # in a query, since each may be the beginning of very many words
MIN_PREFIX_LENGTH = 2
MAX_WORDS = 20  # in a query: a long phrase is slow to find in long and monotonous posts

_COMBINING = [
    chr(code) for code in range(0x300, 0x3100) if unicodedata.category(chr(code))[0] == "M"
]
_MARKS = "".join(_COMBINING)
# Accents and the optional vowels of Hebrew and Arabic, by their combining classes. Others, such as
# the vowels of Hindi and the voicing marks of Japanese, make another word.
_ACCENTS = "".join(
    mark
    for mark in _COMBINING
    if 10 <= unicodedata.combining(mark) <= 36 or unicodedata.combining(mark) >= 200
)
_ignored = re.compile(f"[{_ACCENTS}\u00ad\u200c-\u200f\u2060\ufeff]")  # and invisible characters
# Thai, Lao, Myanmar, Khmer, Japanese and Chinese.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_word = re.compile(
    rf"(?=\w)[{_UNSPACED}][{_MARKS}]*|[^\W_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[{_MARKS}])*"
)
_ascii_word = re.compile("[a-z0-9]+")  # the same words, in half of the time
_part = re.compile(r'"([^"]*)"|([^\s"]+)')


@dataclass(frozen=True)
class Term:
    """Words that must follow each other; the last one may be a prefix."""

    words: tuple[str, ...]
    is_prefix: bool = False


def split_words(text: str) -> list[str]:
    """Return the words of a text."""
    pattern = _ascii_word if text.isascii() else _word
    return [word[:MAX_WORD_LENGTH] for word in pattern.findall(_normalize(text))]


def parse_query(query: str) -> list[Term]:
    """Return what a text must contain to be found.

    Each word, each `"phrase in quotes"` and each `prefix*` is a term. Any text is a query; one
    without words has no terms, and after twenty words, the others do not count.
    """
    terms: dict[Term, None] = {}  # in order, without repetitions
    left, prefixes = MAX_WORDS, 0
    for phrase, part in _part.findall(query):
        words = split_words(phrase or part)
        if 0 < len(words) <= left:
            is_prefix = part.endswith("*") and len(words[-1]) >= MIN_PREFIX_LENGTH
            prefixes += is_prefix
            terms[Term(tuple(words), is_prefix and prefixes <= MAX_PREFIXES)] = None
        elif words and left:
            terms[Term(tuple(words[:left]))] = None
        left = max(0, left - len(words))
    return list(terms)


def find_words(text: str, terms: Sequence[Term]) -> list[tuple[int, int]]:
    """Return the start and end of each word of the terms in a text.

    Words of a phrase are found wherever they occur.
    """
    if not terms:
        return []
    wanted = {word for term in terms for word in term.words}
    prefixes = tuple(term.words[-1] for term in terms if term.is_prefix)
    return [
        match.span()
        for match in _word.finditer(text)
        if any(word in wanted or word.startswith(prefixes) for word in split_words(match[0]))
    ]


def _normalize(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", _ignored.sub("", decomposed))[:MAX_NORMALIZED_LENGTH]
