"""Pages, feeds and the words of the script are in the language of the site; the API is English."""

import json
from html import unescape

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.languages import LANGUAGES, in_language
from posting.pages import elements
from posting.web.system import DIGEST
from tests.helpers.pages import Reader


@pytest.fixture
def german(make_app):
    return make_app(LANGUAGE="de").test_client()


def words(client, language, version=DIGEST):
    """Return the response with the words of the script in a language, and the words."""
    response = client.get(f"/static/{version}-{language}/catalog.js")
    text = response.text[response.text.index("export default ") :]
    return response, json.loads(text.removeprefix("export default ").rstrip(";\n"))


def choose(owner, language):
    response = owner.patch("/site", json={"language": language})
    assert response.status_code == 200, response.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_names_its_language(make_app, language):
    client = make_app(LANGUAGE=language).test_client()
    html = client.get("/signin").text
    assert f'<html lang="{language}" dir="ltr">' in html
    assert ("Sign in" in html) == (language == "en")


def test_pages_feeds_and_the_manifest_are_in_the_language(german):
    assert "Anmelden" in german.get("/").text
    assert 'xml:lang="de"' in german.get("/feed.atom").text
    assert german.get("/feed.json").json["language"] == "de"
    assert "Kommentare" in german.get("/comments/feed.json").json["title"]
    manifest = german.get("/manifest.webmanifest").json
    assert (manifest["lang"], manifest["dir"]) == ("de", "ltr")


def test_errors_on_pages_are_in_the_language_and_those_of_the_api_are_not(german):
    page = Reader(german.get(f"/p/{'a' * 21}").text)
    assert "Diesen Beitrag gibt es nicht" in page.text
    problem = german.get(f"/posts/{'a' * 21}").json
    assert (problem["title"], problem["detail"]) == ("Not Found", "There is no such post.")


def test_an_owner_chooses_the_language_and_the_next_request_has_it(owner, alice, anonymous):
    """No part of a page, such as a comment or an excerpt, stays in the language before."""
    post = alice.create_post("On engines", content="![](https://example.net/x)")
    alice.add_comment(post, "Yes.")
    paths = ("/", f"/p/{post['id']}", "/@alice", "/members")
    english = [anonymous.get(path).text for path in paths]
    choose(owner, "de")
    assert anonymous.get("/site").json["language"] == "de"
    pages = [anonymous.get(path).text for path in paths]
    for html in pages:
        assert '<html lang="de"' in html
    assert "Kommentar</span>" in pages[0]
    assert "Antworten" in pages[1]
    choose(owner, None)
    assert [anonymous.get(path).text for path in paths] == english


def test_the_operator_fixes_the_language(make_app, owner):
    client = make_app(LANGUAGE="fr").test_client()
    client.set_cookie("session", owner.session_token)
    [error] = client.patch("/site", json={"language": "de"}).json["errors"]
    assert (error["pointer"], error["code"]) == ("/language", "fixed")


def test_an_unknown_language_is_refused(owner):
    [error] = owner.patch("/site", json={"language": "xx"}).json["errors"]
    assert (error["pointer"], error["code"]) == ("/language", "not_a_choice")


def test_a_language_that_only_a_newer_version_knows_is_english(app, owner, anonymous):
    choose(owner, "de")
    with app.app_context(), db.engine.begin() as connection:
        connection.execute(sa.text("UPDATE site SET language = 'tlh'"))
    assert '<html lang="en"' in anonymous.get("/members").text


class TestScript:
    def test_a_page_loads_the_words_of_its_language_only(self, german):
        html = german.get("/write").text
        assert f"/static/{DIGEST}-de/catalog.js" in html
        assert f"/static/{DIGEST}-en/" not in html

    def test_visitors_of_the_front_page_load_no_words(self, german):
        assert "catalog.js" not in german.get("/").text

    def test_the_words_never_change(self, german):
        response, found = words(german, "de")
        assert "immutable" in response.headers["Cache-Control"]
        assert response.mimetype == "text/javascript"
        assert found["Your text is kept."] == "Dein Text bleibt erhalten."
        assert found["%(num)s image"] == {"one": "%(num)s Bild", "other": "%(num)s Bilder"}

    @pytest.mark.parametrize("language", ["en", "xx", ""])
    def test_other_languages_have_no_words(self, german, language):
        response, found = words(german, language)
        assert found == {}
        assert ("immutable" in response.headers["Cache-Control"]) == (language == "en")

    def test_the_words_of_another_version_are_asked_for_again(self, german):
        response, found = words(german, "de", version="0" * 12)
        assert found
        assert "immutable" not in response.headers["Cache-Control"]


class TestNumbers:
    @pytest.mark.parametrize(
        ("language", "number", "text"),
        [
            ("en", 1, "1 byte"),
            ("en", 999, "999 bytes"),
            ("en", 12_345, "12.3 kB"),
            ("en", 12_350, "12.4 kB"),
            ("en", 120_000_000, "120 MB"),
            ("de", 12_345, "12,3 kB"),
            ("fr", 5_242_880, "5,2\u202fMo"),
            ("es", 48_000_000_000, "48 GB"),
        ],
    )
    def test_sizes(self, app, language, number, text):
        with app.test_request_context(), in_language(language):
            assert elements.size(number) == text

    def test_times(self, app):
        time = "2026-11-29T17:05:00.000Z"
        with app.test_request_context():
            for language, expected in (("en", "Nov 29, 2026"), ("de", "29.11.2026")):
                with in_language(language):
                    html = unescape(elements.time(time))
                assert f">{expected}</time>" in html
                assert "UTC" in html

    def test_counts(self, german, alice):
        post = alice.create_post("x")
        with german.application.app_context(), db.engine.begin() as connection:
            statement = sa.text("UPDATE posts SET comment_count = 1234 WHERE id = :id")
            connection.execute(statement, {"id": post["id"]})
        assert "1.234" in german.get("/").text
