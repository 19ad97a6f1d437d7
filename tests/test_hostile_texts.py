"""Hostile texts cost little time and memory wherever they are read (`make fuzz` generates more)."""

import gzip
import json
import os
import time
from urllib.parse import urlencode

import comrak
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posting.accounts.mentions import find_mentions
from posting.db.types import ID_LENGTH
from posting.markdown import EXTRA_LENGTH, MAX_GROWTH, MAX_TAGS
from posting.ops.archive.exporting import export_to_path
from posting.pages import highlight, markdown
from posting.search.words import parse_query, split_words
from tests.conftest import MANY
from tests.helpers.hostile_texts import ATOMS, SHAPES, STANDING
from tests.helpers.rendering import without_failures
from tests.helpers.timing import seconds_of, slowness

SECONDS = 0.1  # of CPU time
SECONDS_TO_HIGHLIGHT = 0.05
TRIES = 5
TERMS = parse_query('zzz yy* "a a a" 字 1')
TERMS_OF_TITLE = parse_query("looms loo*")  # occur in no text
# The requests take most of the time: `make test` sends each fourth text.
SENT = STANDING if settings().max_examples >= MANY else STANDING[::4]
BASE = f"https://{'h' * 60}.example/p/{'x' * ID_LENGTH}"  # of a feed


def within(seconds, call, *arguments, **options):
    """Return the result of a call that takes at most so much CPU time."""
    if "COVERAGE_RUN" in os.environ:  # set by `coverage run`, which watches each line
        seconds *= 2
    spent = []
    while len(spent) < TRIES:
        before = slowness() if spent else 1
        taken, result = seconds_of(call, *arguments, **options)
        if taken <= seconds * before or taken <= seconds * slowness():
            return result
        spent.append((taken, before))
        time.sleep(0.1 * len(spent))  # something else may be using the memory of the machine
    raise AssertionError(f"CPU seconds, and how slow the machine was: {spent}")


@without_failures()
def read_everywhere(text):
    """Do with a text what requests do with it, and hold all of it to its budget."""
    within(SECONDS, split_words, text)
    within(SECONDS, find_mentions, text)
    html = within(SECONDS, markdown.render, text, image_urls=("/",), base=BASE)
    assert len(html) <= MAX_GROWTH * len(text) + EXTRA_LENGTH
    assert html.count("<") <= MAX_TAGS
    for terms in (TERMS, TERMS_OF_TITLE):
        within(SECONDS_TO_HIGHLIGHT, highlight.excerpt, text, terms)


def test_a_text_that_cannot_be_rendered_is_a_failure(monkeypatch):
    """The service shows it as it is, and logs an error."""

    def fail(*_, **__):
        raise ValueError

    monkeypatch.setattr(comrak, "render_markdown", fail)
    with pytest.raises(AssertionError, match="cannot be rendered"):
        read_everywhere("a")


@pytest.mark.parametrize("text", SENT, ids=lambda text: ascii(text[:12]))
def test_hostile_texts_are_cheap_in_every_request(text, alice, anonymous, tmp_path, caplog):
    body = {"title": "On engines", "content": text}
    post = within(SECONDS, alice.post, "/posts", json=body).json
    path = f"/posts/{post['id']}"
    assert within(SECONDS, alice.patch, path, json={"title": "On looms"}).status_code == 200
    body = {"content": f"looms {text}"[:10_000]}
    comment = within(SECONDS, alice.post, f"{path}/comments", json=body).json
    edit = {"content": body["content"].upper()}
    edited = within(SECONDS, alice.patch, f"/comments/{comment['id']}", json=edit)
    assert edited.status_code in {200, 422}  # which may be longer
    assert within(SECONDS, alice.post, "/preview", json={"content": text}).status_code == 200
    page = f"/p/{post['id']}"
    for shown in (
        *("/", page, f"{page}/edit", f"{page}/feed.atom", "/@alice", "/@alice/feed.json"),
        *("/feed.atom", "/feed.json", "/search?q=looms", "/search?q=looms+a*"),
        *("/search?show=comments&q=looms", "/search?show=comments&q=looms+a*"),
        *(path, f"{path}/comments", "/posts?expand=content", "/posts?q=looms"),
        *("/comments", "/comments/feed.atom", "/comments?q=looms"),
        f"/users?{urlencode({'q': f'a{text}'[:64]})}",
    ):
        assert within(SECONDS, anonymous.get, shown).status_code == 200
    file = tmp_path / "archive.jsonl.gz"
    with alice.application.app_context():
        within(2 * SECONDS, export_to_path, file, replace=True)
    assert json.dumps(text).encode() in gzip.decompress(file.read_bytes())
    assert "cannot be rendered" not in caplog.text


@pytest.mark.parametrize("text", STANDING, ids=lambda text: ascii(text[:12]))
def test_hostile_texts_stay_in_their_budget(text):
    read_everywhere(text)


@pytest.mark.fuzz
@pytest.mark.parametrize("atom", ATOMS, ids=ascii)
def test_generated_texts_stay_in_their_budget(atom):
    @settings(max_examples=max(1, settings().max_examples // 5))
    @given(shape=st.sampled_from(SHAPES), other=st.sampled_from(ATOMS))
    def stays_in_its_budget(shape, other):
        read_everywhere(shape(atom, other))

    stays_in_its_budget()
