"""The languages of pages, mails and feeds. Texts in the code are English; catalogs translate them.

A language has two catalogs: `messages.po` for code and templates, and `script.po` for the script.
Nothing has to be compiled. The catalogs of the site are read at the start, and those of another
language when it is first used, in 12 ms each.
"""

from contextlib import AbstractContextManager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

from babel import Locale
from babel.core import get_global
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.support import Translations
from flask import Flask, current_app
from flask_babel import Babel, Domain, force_locale, get_locale

ENGLISH = "en"
# The languages by their codes, each with its own name for itself.
LANGUAGES = {
    ENGLISH: "English",
    "de": "Deutsch",
    "es": "Español",
    "fr": "Français",
    "it": "Italiano",
    "pt": "Português",
}
MAX_CODE = 16  # characters
FOLDER = Path(__file__).parent / "translations"
# The plural rules of all languages differ within these numbers.
NUMBERS = (*range(200), 1_000_000)

Words = dict[str, str | dict[str, str]]


class Catalogs(Domain):  # type: ignore[misc]  # Flask-Babel has no types
    """The catalogs for code and templates."""

    def get_translations(self) -> Translations:
        return translations_of(current_language())


def site_language() -> str:
    """Return the code of the language that the operator or an owner has chosen."""
    return known(current_app.config["LANGUAGE"])


def known(code: str) -> str:
    """Return the code of a language, or English for one that only a newer version knows."""
    return code if code in LANGUAGES else ENGLISH


def current_language() -> str:
    """Return the code of the language of texts: that of the site, or of the reader of a mail."""
    locale = get_locale()
    return str(locale.language) if locale else ENGLISH


def in_language(code: str | None) -> AbstractContextManager[None]:
    """Return a context in which texts are in a language, or in that of the site."""
    context: AbstractContextManager[None]
    context = force_locale(code if code in LANGUAGES else site_language())
    return context


def direction_of(language: str) -> str:
    """Return the direction in which a language is written, as HTML has it: `ltr` or `rtl`."""
    return Locale.parse(language).text_direction


@cache
def translations_of(language: str) -> Translations:
    """Return the translations for code and templates."""
    file = BytesIO()
    write_mo(file, read_catalog(language, "messages"))
    file.seek(0)
    return Translations(file)


@cache
def words_of(language: str) -> Words:
    """Return the translations for the script, by the English texts.

    A text about a number of things has a form for each category of CLDR, as `Intl.PluralRules`
    names them.
    """
    catalog, rule = read_catalog(language, "script"), Locale.parse(language).plural_form
    plural = translations_of(language).plural
    categories = {rule(number): plural(number) for number in NUMBERS}
    words: Words = {}
    for message in catalog:
        strings = message.string or ""
        if not message.id or not all(strings):  # the header, or a text without a translation
            continue
        if isinstance(strings, str):
            words[str(message.id)] = strings
        else:
            words[message.id[0]] = {name: strings[place] for name, place in categories.items()}
    return words


def read_catalog(language: str, name: str) -> Catalog:
    """Return a catalog of a language, which is empty for English."""
    if language == ENGLISH:
        return Catalog(ENGLISH)
    with path_of(language, name).open("rb") as file:
        return read_po(file, locale=language)


def path_of(language: str, name: str) -> Path:
    """Return the file of a catalog."""
    return FOLDER / language / "LC_MESSAGES" / f"{name}.po"


def init_app(app: Flask) -> None:
    """Give templates `_`, `ngettext` and `trans`, which translate texts."""
    # Read now what the language of the site needs, because an upgrade replaces the files of a
    # version that still serves. Others are read later, since Babel's data of each take 1 MiB.
    words_of(app.config["LANGUAGE"])
    unused: list[Any] = [get_global("likely_subtags"), get_global("territory_aliases")]
    unused += [get_global("territory_currencies"), get_global("territory_languages")]
    for table in unused:  # about all territories, which take 2 MiB
        table.clear()
    babel = Babel(app, locale_selector=site_language, default_timezone="UTC")
    babel.domain_instance = Catalogs()
