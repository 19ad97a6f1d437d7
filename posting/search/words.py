"""Words of texts and of search queries, which are the same on both databases.

A word is a run of letters and digits, without regard to case, accents and compatibility forms, as
Unicode defines them (UAX #15 and section 3.13 of the standard), and to what `folding` has. In
scripts that put no spaces between words, such as Chinese and Thai, each character is a word.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from posting.search.folding import FOLDED, may_have_folded

MAX_WORD_LENGTH = 64  # characters; the rest of a longer word does not count
MAX_NORMALIZED_LENGTH = 200_000  # characters of a text; Postgres indexes at most 1 MiB
MAX_NON_STARTERS = 30  # in a row, as in the stream-safe text format (UAX #15, section 13)
MAX_PREFIXES = 3  # in a query, since each may be the beginning of very many words
MIN_PREFIX_LENGTH = 2
MIN_BEGINNING_LENGTH = 3  # of the last word of a search on the pages, which may be a beginning
# Shorter words have too many that are like them; of longer ones, there are too many to look up.
MISSPELLED_LENGTHS = range(4, 17)
BLOCK = 0x80  # characters, of which many scripts have their own
MAX_WORDS = 20  # in a query: a long phrase is slow to find in long and monotonous posts
MAX_DIFFERENT_WORDS = 10_000  # of a text, to find those to highlight
MAX_DIFFERENT_LENGTH = 100_000  # characters of these words
MAX_FOUND = 1_000  # words that were found, to find a phrase

RowData = Mapping[Any, Any]  # the columns of a row

_COMBINING = [
    chr(code)
    for code in (*range(0x300, 0x3100), *range(0xFE20, 0xFE30))
    if unicodedata.category(chr(code))[0] == "M"
]
# Characters that have no look of their own or only stretch a word, except the zero-width space,
# which separates words.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u0640\u07fa\u115f\u1160\u180b-\u180f\u200c-\u200f\u2060-\u2064\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0100-\U000e01ef"
)
# What may follow a letter within a word: also the voicing marks of halfwidth Japanese.
_MARKS = "".join(_COMBINING) + _INVISIBLE + "\uff9e\uff9f"
# Accents and the optional vowels of Hebrew and Arabic, by their combining classes, and enclosing
# marks. Others, such as the vowels of Hindi and the voicing marks of Japanese, make another word.
_ACCENTS = "".join(
    mark
    for mark in _COMBINING
    if 10 <= unicodedata.combining(mark) <= 36
    or unicodedata.combining(mark) >= 200
    or unicodedata.category(mark) == "Me"
)
_accent = re.compile(f"[{_ACCENTS}]")
_invisible = re.compile(f"[{_INVISIBLE}]")
# Marks after a name, and fractions after a number, would become letters and digits of it.
_SEPARATE = [(mark, " ") for mark in "™℠"] + [
    (chr(code), f" {chr(code)} ")
    for code in (0xBC, 0xBD, 0xBE, *range(0x2150, 0x2160), 0x2189)  # vulgar fractions
]
# Symbols that decompose to letters or digits, such as `№` and `㎏`.
_LETTER_SYMBOLS = (
    "\u20a8\u2100\u2101\u2103\u2105\u2106\u2109\u2116\u2121\u213b\u249c-\u24e9\u2e9f\u2ef3"
    "\u2f00-\u2fd5\u3196-\u319f\u3200-\u321e\u322a-\u3247\u3250\u3260-\u327e\u328a-\u32b0"
    "\u32c0-\u33ff\ufdfc\U0001f110-\U0001f12e\U0001f130-\U0001f14f\U0001f16a-\U0001f16c\U0001f190"
    "\U0001f200-\U0001f202\U0001f210-\U0001f23b\U0001f240-\U0001f248\U0001f250\U0001f251"
)
_MARK_OR_SYMBOL = (
    r"[^\w\s\x00-\x7f]"  # every non-starter is one, except two that `re` calls letters
)
_LETTERS_AS_MARKS = (("\uff9e", "\u3099"), ("\uff9f", "\u309a"))
# One character decomposes to at most two non-starters, so only a row of 16 or more can exceed 30.
_marks_and_symbols = re.compile(f"(?<!{_MARK_OR_SYMBOL}){_MARK_OR_SYMBOL}{{16,}}")
# Thai, Lao, Myanmar and Khmer without their digits, Japanese and Chinese.
_UNSPACED = (
    "\u0e00-\u0e4f\u0e5a-\u0ecf\u0eda-\u0eff\u1000-\u103f\u104a-\u108f\u109a-\u109f"
    "\u1780-\u17df\u17ea-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\uff66-\uff9d\U00020000-\U0003ffff"
)
# Letters that are apostrophes, primes and accents, and separate words as these do: Unicode has them
# for Ukrainian, Hawaiian, Nahuatl and N'Ko, but keyboards and readers use others.
_APOSTROPHES = "\u02b9-\u02c1\u02c6-\u02d1\u02ec\u02ee\u07f4\u07f5\ua78b\ua78c"
_SPACED = rf"[^\W_{_UNSPACED}{_APOSTROPHES}]"
_word = re.compile(rf"(?=\w)[{_UNSPACED}][{_MARKS}]*+|{_SPACED}++(?:[{_MARKS}]++{_SPACED}*+)*+")
# A word of a text as it was typed, in which the symbols are letters.
_rest = rf"{_SPACED}*+(?:[{_MARKS}{_LETTER_SYMBOLS}]++{_SPACED}*+)*+"
_typed_word = re.compile(
    rf"(?=\w)[{_UNSPACED}][{_MARKS}]*+|{_SPACED}{_rest}|[{_LETTER_SYMBOLS}]{_rest}"
)
# About 1,000 characters, up to the end of a word.
_piece = re.compile(rf"(?s:.{{1,1000}}){_rest}")
_is_unspaced = re.compile(f"[{_UNSPACED}]").match
_ascii_word = re.compile("[A-Za-z0-9]+")  # the same words, in half of the time
_part = re.compile(r'"([^"]*)"|([^\s"]+)')


@dataclass(frozen=True)
class RowWords:
    """The words of each text of a row, which are split before a transaction begins."""

    texts: tuple[str, ...]
    words: tuple[list[str], ...]


Entry = tuple[RowData, RowWords]  # a row and its words


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


def with_beginning(query: str) -> str:
    """Return a query whose last word may be the beginning of a word, as if `*` followed it."""
    *_, last = [None, *_typed_word.finditer(query)]
    if last is None or last.end() < len(query) or _part.findall(query)[-1][0]:
        return query
    word = "".join(split_words(last[0])[-1:])
    is_beginning = len(word) >= MIN_BEGINNING_LENGTH and not _is_unspaced(word)
    return f"{query}*" if is_beginning else query


def similar_words(word: str) -> set[str]:
    """Return the words that differ from a word by one slip, at most 5,000.

    It is a letter too many, a letter too few, another letter, or two letters exchanged. There are
    none for a word that is very short or long, or whose letters are of several scripts.
    """
    blocks = {ord(letter) // BLOCK for letter in word if letter.isalpha()}
    if len(word) not in MISSPELLED_LENGTHS or len(blocks) != 1:
        return set()
    start = blocks.pop() * BLOCK
    letters = filter(str.isalpha, map(chr, range(start, start + BLOCK)))
    alphabet = {letter for letter in letters if split_words(letter) == [letter]}
    parts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    found = {left + right[1:] for left, right in parts if right}
    found |= {left + right[1] + right[0] + right[2:] for left, right in parts if len(right) > 1}
    for letter in alphabet:
        found |= {left + letter + right[1:] for left, right in parts if right}
        found |= {left + letter + right for left, right in parts}
    return found - {word}


def replace_word(query: str, word: str, replacement: str) -> str:
    """Return a query with another word in the place of a word, however it was typed."""

    def replace(match: re.Match[str]) -> str:
        return replacement if split_words(match[0]) == [word] else match[0]

    return _typed_word.sub(replace, query)


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

    pattern = _ascii_word if text.isascii() else _typed_word
    unwanted: set[str] = set()
    length = 0
    for piece in _piece.finditer(text):
        new = set(pattern.findall(piece[0])) - unwanted
        # Folding 100,000 different words takes 0.03 seconds together, and 0.2 one by one.
        folded = split_words("\n".join(word[:MAX_WORD_LENGTH] for word in new))
        if are_wanted(folded):
            found = {word for word in new if are_wanted(split_words(word[:MAX_WORD_LENGTH]))}
            matches = pattern.finditer(text, *piece.span())
            yield from (match.span() for match in matches if match[0] in found)
            new -= found
        unwanted |= new
        length += sum(map(len, folded))
        if len(unwanted) > MAX_DIFFERENT_WORDS or length > MAX_DIFFERENT_LENGTH:
            break


def find_first(text: str, terms: Sequence[Term]) -> tuple[int, int] | None:
    """Return the start and end of the first term in a text, or None.

    If no term is found as a whole, return the first word that was found.
    """
    first: tuple[int, int] | None = None
    words: list[str] = []  # those that were found and follow each other
    starts: list[int] = []
    last = 0
    for start, end in islice(find_words(text, terms), MAX_FOUND):
        first = first or (start, end)
        if _typed_word.search(text, last, start):
            words, starts = [], []
        of_place = split_words(text[start:end][:MAX_WORD_LENGTH])
        words += of_place
        starts += [start] * len(of_place)
        last = end
        for term in terms:
            if _is_at_end(term, words):
                return starts[-len(term.words)], end
    return first


def _is_at_end(term: Term, words: Sequence[str]) -> bool:
    """Return whether words end with those of a term."""
    *others, last = words[-len(term.words) :]
    ends = last.startswith(term.words[-1]) if term.is_prefix else last == term.words[-1]
    return ends and tuple(others) == term.words[:-1]


def _normalize(text: str) -> str:
    """Return a text in the form in which words are compared: folded, and without accents."""
    if text.isascii():
        return text.lower()
    for symbol, separate in _SEPARATE:
        text = text.replace(symbol, separate)
    bounded = _limit_non_starters(_invisible.sub("", text))
    decomposed = unicodedata.normalize("NFKD", bounded)[:MAX_NORMALIZED_LENGTH]
    decomposed = unicodedata.normalize("NFKD", decomposed.casefold())
    folded = _accent.sub("", decomposed)
    if may_have_folded(folded):
        folded = folded.translate(FOLDED)
    return unicodedata.normalize("NFC", folded)[:MAX_NORMALIZED_LENGTH]


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
