"""Characters that count as others in a search, although Unicode does not decompose them.

The table is applied to texts in lower case and without accents. It follows what search engines do
for these languages: Latin letters as in the transform Latin-ASCII of CLDR, Arabic and Persian
letters as in Lucene.
"""

import re
import unicodedata
from itertools import chain

# The blocks of Latin letters beyond ASCII.
_LATIN = chain(
    *(range(0x80, 0x2B0), range(0x1D00, 0x1F00), range(0x2C60, 0x2C80)),
    *(range(0xA720, 0xA800), range(0xAB30, 0xAB70)),
)
_variant = re.compile("LATIN SMALL LETTER ([A-Z]) WITH .*")  # such as `l` with stroke
_NUMBERS = range(0x80, 0x20000)  # has all decimal digits of Unicode
_foreign_digit = re.compile(r"[^\D0-9]")

_OTHERS = {
    # Latin letters that are not variants of one letter.
    **{"æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "ı": "i", "ŋ": "n", "ĸ": "q"},
    **{"ə": "e", "ɛ": "e", "ɔ": "o", "ɵ": "o", "ʉ": "u"},
    "ґ": "г",
    # Arabic letters that have other code points in Persian, Urdu or Kurdish, or are often confused.
    **dict.fromkeys("ىیے", "ي"),
    **dict.fromkeys("کڪ", "ك"),
    **dict.fromkeys("ةۃہھە", "ه"),
    "ٱ": "ا",
    # Ligatures of Yiddish.
    **{"װ": "וו", "ױ": "וי", "ײ": "יי"},
    # Two marks of Hindi that are often exchanged or left out.
    **{"\N{DEVANAGARI SIGN CANDRABINDU}": "\N{DEVANAGARI SIGN ANUSVARA}"},
    "\N{DEVANAGARI SIGN NUKTA}": "",
}


def _make_table() -> dict[int, str]:
    """Return the table for `str.translate`. It takes 15 ms."""
    table = str.maketrans(_OTHERS)
    for code in _LATIN:
        if match := _variant.fullmatch(unicodedata.name(chr(code), "")):
            table[code] = match[1].lower()
    for digit in _foreign_digit.findall("".join(map(chr, _NUMBERS))):
        table[ord(digit)] = str(unicodedata.decimal(digit))
    return table


FOLDED = _make_table()
# Most texts in other scripts have none of these: to look for them takes a tenth of the time. `re`
# looks up characters up to U+FFFF in a table, and compares with the others one by one.
_looked_up = re.escape("".join(chr(code) for code in FOLDED if code <= 0xFFFF))
may_have_folded = re.compile(f"[{_looked_up}\U00010000-\U0010ffff]").search
