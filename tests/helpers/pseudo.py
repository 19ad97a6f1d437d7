"""Languages that are made up: a text in them that is still English was never marked.

Their texts have no ASCII letters, and are 40 percent longer. `el` is written from left to right,
and `ar` from right to left. Browsers and Babel write dates and numbers as these languages do.
"""

import re
from collections.abc import Callable
from pathlib import Path

from babel.messages.pofile import write_po

from posting import languages
from tests.helpers.translations import PLACEHOLDER, SOURCES, TAG, as_list, read_source

LETTERS = {"el": "αβξδεφγηιϊκλμνοπθρστυωϋχψζ", "ar": "ابكدعفجهيزقلمنوصضرستثطظشغح"}
KEPT = re.compile(f"{PLACEHOLDER.pattern}|{TAG.pattern}")
WORD = re.compile("[A-Za-z]+")


def to_pseudo(language: str) -> Callable[[str], str]:
    """Return a function that returns an English text in a language that is made up."""
    letters = dict(zip("abcdefghijklmnopqrstuvwxyz", LETTERS[language], strict=True))

    def replace_word(word: re.Match[str]) -> str:
        text = "".join(letters[letter] for letter in word[0].lower())
        return text + text[-1] * round(len(text) * 0.4)

    def replace(text: str) -> str:
        place, parts = 0, []
        for kept in KEPT.finditer(text):
            parts += [WORD.sub(replace_word, text[place : kept.start()]), kept[0]]
            place = kept.end()
        return "".join([*parts, WORD.sub(replace_word, text[place:])])

    return replace


def write_catalogs(folder: Path) -> None:
    """Write the catalogs of both languages into a folder."""
    for language in LETTERS:
        pseudo = to_pseudo(language)
        for name in SOURCES:
            catalog = read_source(name, language)
            for message in catalog:
                ids = as_list(message.id)
                if len(ids) > 1:
                    forms = [ids[0], *[ids[1]] * (catalog.num_plurals - 1)]
                    message.string = tuple(map(pseudo, forms))
                elif ids[0]:
                    message.string = pseudo(ids[0])
            path = folder / language / "LC_MESSAGES" / f"{name}.po"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                write_po(file, catalog)


def add_languages(folder: Path) -> None:
    """Let this process know both languages. Call this before an app is made."""
    languages.FOLDER = folder
    languages.LANGUAGES |= dict.fromkeys(LETTERS, "…")
