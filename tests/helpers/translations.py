"""The catalogs of translations: `python -m tests.helpers.translations` brings them up to date."""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.pofile import write_po

from posting.languages import ENGLISH, LANGUAGES, path_of, read_catalog
from tests.helpers import ROOT

PACKAGE = ROOT / "posting"
# The files whose texts are in a catalog, and the method of Babel that finds them.
SOURCES = {
    "messages": [("**.py", "python"), ("templates/**", "jinja2")],
    "script": [("static/**.js", "javascript")],
}
OPTIONS = {"static/**.js": {"parse_template_string": "true"}}
LAZY = {f"lazy_{name}": DEFAULT_KEYWORDS[name] for name in ("gettext", "ngettext", "pgettext")}
HEADER = """msgid ""
msgstr ""
"Language: {language}\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Plural-Forms: {plural_forms}\\n"

"""
MOST = 20  # problems of a catalog that are listed
PLACEHOLDER = re.compile(r"%\(\w+\)s|%%")
TAG = re.compile(r"<[^>]+>|&\w+;")


@cache
def extract(name: str) -> Catalog:
    """Return the texts of code and templates, or of the script, without translations."""
    return read_source(name, ENGLISH)


def read_source(name: str, language: str) -> Catalog:
    """Return these texts as a new catalog for a language."""
    catalog = Catalog(language)
    keywords = DEFAULT_KEYWORDS | LAZY
    for file, line, text, comments, context in extract_from_dir(
        PACKAGE, SOURCES[name], OPTIONS, keywords
    ):
        catalog.add(
            text, None, [(f"posting/{file}", line)], auto_comments=comments, context=context
        )
    return catalog


def read(language: str, name: str) -> Catalog:
    """Return a catalog, which is empty if it is not there yet."""
    is_there = path_of(language, name).exists()
    return read_catalog(language, name) if is_there else Catalog(language)


def update(language: str, name: str) -> None:
    """Add the new texts to a catalog, and remove those that are no longer used."""
    catalog = read(language, name)
    catalog.update(extract(name), no_fuzzy_matching=True)
    path = path_of(language, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        header = HEADER.format(language=language, plural_forms=catalog.plural_forms)
        file.write(header.encode())
        write_po(
            file,
            catalog,
            width=0,
            omit_header=True,
            sort_by_file=True,
            ignore_obsolete=True,
            include_lineno=False,
        )


def find_problems(language: str, name: str) -> Iterator[str]:
    """Yield what is wrong with a catalog, in words."""
    catalog, source = read(language, name), extract(name)
    known = {key_of(message) for message in catalog if message.id}
    needed = {key_of(message) for message in source if message.id}
    for missing in needed - known:
        yield f"missing: {missing[1]}"
    for unused in known - needed:
        yield f"unused: {unused[1]}"
    for message in catalog:
        if message.id:
            for problem in problems_of(message):
                context, text = key_of(message)
                yield f"{problem}: {text}" + (f" ({context})" if context else "")


def problems_of(message: Message) -> Iterator[str]:
    """Yield what is wrong with the translation of a text."""
    ids, texts = as_list(message.id), as_list(message.string)
    if not texts or not all(texts):
        yield "not translated"
        return
    if message.fuzzy:
        yield "not certain (fuzzy)"
    *_, other = ids
    needed = set(PLACEHOLDER.findall(ids[0])) & set(PLACEHOLDER.findall(other))
    for text in texts:
        found = Counter(PLACEHOLDER.findall(text))
        # The form for one thing may leave out the number if the English one does.
        is_complete = found.keys() <= set(PLACEHOLDER.findall(other)) and found.keys() >= needed
        if not (is_complete if len(ids) > 1 else found == Counter(PLACEHOLDER.findall(other))):
            yield "other placeholders"
        if Counter(TAG.findall(text)) != Counter(TAG.findall(other)):
            yield "other tags"
        if TAG.sub("", text).count('"') != TAG.sub("", other).count('"'):
            yield 'another number of straight " (in an attribute, it would end the text)'
        if set("%<>&") & set(TAG.sub("", PLACEHOLDER.sub("", text))):
            yield "a %, <, > or & (write %% for a percent sign)"
        if text.strip() != text and other.strip() == other:
            yield "a space at an end"


def key_of(message: Message) -> tuple[str, str]:
    """Return what tells a text from others: its context and its English form."""
    return message.context or "", as_list(message.id)[0]


def as_list(text: object) -> list[str]:
    return [*text] if isinstance(text, tuple | list) else [str(text or "")]


def main() -> int:
    """Update all catalogs, print what is wrong with them, and return the exit code."""
    catalogs = [
        (language, name) for language in sorted(LANGUAGES.keys() - {ENGLISH}) for name in SOURCES
    ]
    for language, name in catalogs:
        update(language, name)
    is_wrong = False
    for language, name in catalogs:
        problems = [*find_problems(language, name)]
        is_wrong = is_wrong or bool(problems)
        for problem in problems[:MOST]:
            print(f"{path_of(language, name).relative_to(ROOT)}: {problem}")
        if len(problems) > MOST:
            print(f"{path_of(language, name).relative_to(ROOT)}: {len(problems) - MOST} more")
    if is_wrong:
        print("Translate these texts, and run this again.")
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
