"""Words of texts and of search queries, which are the same on both databases.

A word is a run of letters and digits, without regard to case, accents and compatibility forms, as
Unicode defines them (UAX #15 and section 3.13 of the standard). In scripts that put no spaces
between words, such as Chinese and Thai, each character is a word.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_WORD_LENGTH = 64  # characters; the rest of a longer word does not count
MAX_NORMALIZED_LENGTH = 200_000  # characters of a text; Postgres indexes at most 1 MiB
MAX_NON_STARTERS = 30  # in a row, as in the stream-safe text format (UAX #15, section 13)
MAX_PREFIXES = 3  # in a query, since each may be the beginning of very many words
MIN_PREFIX_LENGTH = 2
MAX_WORDS = 20  # in a query: a long phrase is slow to find in long and monotonous posts
MAX_DIFFERENT_WORDS = 10_000  # of a text, to find those to highlight
MAX_DIFFERENT_LENGTH = 100_000  # characters of these words

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
_accent = re.compile(f"[{_ACCENTS}]")
_invisible = re.compile("[\u00ad\u200c-\u200f\u2060\ufeff]")
_MARK_OR_SYMBOL = (
    r"[^\w\s\x00-\x7f]"  # every non-starter is one, except two that `re` calls letters
)
_LETTERS_AS_MARKS = (("\uff9e", "\u3099"), ("\uff9f", "\u309a"))
# One character decomposes to at most two non-starters, so only a row of 16 or more can exceed 30.
_marks_and_symbols = re.compile(f"(?<!{_MARK_OR_SYMBOL}){_MARK_OR_SYMBOL}{{16,}}")
# Thai, Lao, Myanmar, Khmer, Japanese and Chinese.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_SPACED = rf"[^\W_{_UNSPACED}]"
_word = re.compile(rf"(?=\w)[{_UNSPACED}][{_MARKS}]*+|{_SPACED}++(?:[{_MARKS}]++{_SPACED}*+)*+")
# About 1,000 characters, up to the end of a word.
_piece = re.compile(rf"(?s:.{{1,1000}}){_SPACED}*+(?:[{_MARKS}]++{_SPACED}*+)*+")
_is_unspaced = re.compile(f"[{_UNSPACED}]").match
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


def has_short_prefix(query: str) -> bool:
    """Return whether a query has a prefix of one character, which `parse_query` takes for a word.

    In scripts without spaces, each character is a word anyway: `東*` finds what `東` finds.
    """
    parts = [part for _, part in _part.findall(query) if part.endswith("*")]
    words = [word for part in parts for word in split_words(part)[-1:]]
    return any(len(word) < MIN_PREFIX_LENGTH and not _is_unspaced(word) for word in words)


def find_words(text: str, terms: Sequence[Term]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each word of the terms in a text.

    Words of a phrase are found wherever they occur. Only the beginning of a text is searched if the
    text has more different words than people write, so that no text takes long.
    """
    wanted = {word for term in terms for word in term.words}
    prefixes = tuple(term.words[-1] for term in terms if term.is_prefix)

    def are_wanted(words: Sequence[str]) -> bool:
        if not wanted.isdisjoint(words):
            return True
        return bool(prefixes) and any(word.startswith(prefixes) for word in words)

    unwanted: set[str] = set()
    length = 0
    for piece in _piece.finditer(text):
        new = set(_word.findall(piece[0])) - unwanted
        # Folding 100,000 different words takes 0.03 seconds together, and 0.2 one by one.
        folded = split_words("\n".join(word[:MAX_WORD_LENGTH] for word in new))
        if are_wanted(folded):
            found = {word for word in new if are_wanted(split_words(word[:MAX_WORD_LENGTH]))}
            matches = _word.finditer(text, *piece.span())
            yield from (match.span() for match in matches if match[0] in found)
            new -= found
        unwanted |= new
        length += sum(map(len, folded))
        if len(unwanted) > MAX_DIFFERENT_WORDS or length > MAX_DIFFERENT_LENGTH:
            break


def _normalize(text: str) -> str:
    """Return a text in the form in which words are compared: folded, and without accents."""
    if text.isascii():
        return text.lower()
    bounded = _limit_non_starters(_invisible.sub("", text))
    decomposed = unicodedata.normalize("NFKD", bounded)[:MAX_NORMALIZED_LENGTH]
    decomposed = unicodedata.normalize("NFKD", decomposed.casefold())
    return unicodedata.normalize("NFC", _accent.sub("", decomposed))[:MAX_NORMALIZED_LENGTH]


def _limit_non_starters(text: str) -> str:
    """Return a text with at most 30 non-starters, such as accents, in a row.

    `unicodedata` sorts each row by insertion, and holds the GIL: a row of 100,000 takes 16 seconds.
    """
    for letter, mark in _LETTERS_AS_MARKS:
        text = text.replace(letter, mark)
    return _marks_and_symbols.sub(_shorten_row, text)


def _shorten_row(row: re.Match[str]) -> str:
    lengths = {character: _count_non_starters(character) for character in set(row[0])}
    kept, length = [], 0
    for character in row[0]:
        length = length + lengths[character] if lengths[character] else 0
        if length <= MAX_NON_STARTERS:
            kept.append(character)
    return "".join(kept)


def _count_non_starters(character: str) -> int:
    """Return to how many non-starters a character decomposes, or 0 if one of them is a starter."""
    decomposed = unicodedata.normalize("NFKD", character)
    return len(decomposed) if all(map(unicodedata.combining, decomposed)) else 0
