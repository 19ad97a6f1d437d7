"""Each language has all texts, with the same placeholders and tags as the English ones."""

import ast
import re

import pytest
from babel.messages.catalog import Message

from posting.languages import ENGLISH, LANGUAGES, words_of
from tests.helpers.translations import (
    PACKAGE,
    SOURCES,
    as_list,
    extract,
    find_problems,
    problems_of,
)

CALL = re.compile(r'\b(?:_|n?gettext|lazy_gettext)\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
COMMENT = re.compile(r"^ *(?://|/\*\*|\*).*$", re.MULTILINE)
SENTENCE = re.compile(r'"([A-Z][^"\n]* [^"\n]*)"')
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("language", LANGUAGES.keys() - {ENGLISH})
def test_each_text_is_translated(language, name):
    assert [*find_problems(language, name)] == [], "run: make translations"


@pytest.mark.parametrize(
    ("text", "translation", "problem"),
    [
        ("Save", "", "not translated"),
        ("%(a)s wrote", "Wrote", "other placeholders"),
        ("%(a)s wrote", "%(b)s schrieb", "other placeholders"),
        ("50 %% left", "50 left", "other placeholders"),
        ("<b>New</b>", "Neu", "other tags"),
        ("New", '„Neu"', 'another number of straight " (in an attribute, it would end the text)'),
        ("New", "Neu ", "a space at an end"),
        ("All", "100 % neu", "a %, <, > or & (write %% for a percent sign)"),
        ("All", "Alle & neu", "a %, <, > or & (write %% for a percent sign)"),
        (("%(num)s day", "%(num)s days"), ("ein Tag", "%(num)s Tage"), "other placeholders"),
        (("one day", "%(num)s days"), ("ein Tag", "%(n)s Tage"), "other placeholders"),
    ],
)
def test_a_translation_that_does_not_fit_is_refused(text, translation, problem):
    assert [*problems_of(Message(text, translation))] == [problem]


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("%(a)s wrote", "%(a)s schrieb"),
        (("one day", "%(num)s days"), ("ein Tag", "%(num)s Tage")),
        ('<a href="/x">Here</a>', '<a href="/x">Hier</a>'),
    ],
)
def test_a_translation_that_fits_is_accepted(text, translation):
    assert not [*problems_of(Message(text, translation))]


def test_no_marked_text_is_overlooked():
    """The extraction of Babel overlooks a call within the values of another one."""
    for name, pattern in (
        ("messages", "**/*.py"),
        ("messages", "**/*.html"),
        ("script", "**/*.js"),
    ):
        known = {text for message in extract(name) for text in as_list(message.id)}
        for path in PACKAGE.glob(pattern):
            for call in CALL.findall(path.read_text()):
                text = "".join(map(ast.literal_eval, STRING.findall(call)))
                assert text in known, path


def test_each_sentence_of_the_script_is_marked():
    known = {text for message in extract("script") for text in as_list(message.id)}
    for path in (PACKAGE / "static").glob("*.js"):
        if path.name != "docs.js":  # the documentation of the API is English
            code = COMMENT.sub("", path.read_text())
            assert set(SENTENCE.findall(code)) <= known, path


def test_forms_have_the_names_of_cldr():
    forms = words_of("fr")["%(num)s open report"]
    assert forms.keys() == {"one", "many", "other"}
    assert forms["one"] != forms["other"]
