"""Limits of form controls are those of the API."""

import re
from html.parser import HTMLParser

import pytest

from posting.images.codec import child
from posting.pages import forms
from tests.helpers import ROOT

TEXTS = ("a", "ab", "abc", "a" * 7, "a" * 8, "-ab", "a b", "a_-9", "a" * 32, "a" * 33, "ä" * 5)


@pytest.fixture(autouse=True)
def _context(app):
    with app.app_context():
        yield


@pytest.mark.parametrize(
    ("form", "name", "expected"),
    [
        ("sign-up", "username", {"required": "", "pattern": r"[A-Za-z0-9][A-Za-z0-9_\-]{2,31}"}),
        ("sign-up", "password", {"required": "", "minlength": 8, "data-max": 256}),
        ("sign-in", "username", {"required": "", "data-max": 256}),
        ("post", "title", {"required": "", "minlength": 1, "data-max": 200}),
        ("post", "content", {"required": "", "minlength": 1, "data-max": 100_000}),
        ("comment", "content", {"required": "", "minlength": 1, "data-max": 10_000}),
        ("profile", "display_name", {"data-max": 64}),
        ("profile", "bio", {"data-max": 500}),
        ("image", "alt", {"data-max": 500}),
        ("invitation", "uses", {"min": 1, "max": 100}),
    ],
)
def test_attributes_follow_the_schemas(form, name, expected):
    assert forms.attributes(form, name) == {"name": name} | expected


@pytest.mark.parametrize("form", forms.SCHEMAS)
def test_a_control_refuses_only_what_the_api_refuses(form):
    schema = forms.SCHEMAS[form]
    for name in schema.fields:
        if name in {"file", "parent_id"}:  # no text of the user
            continue
        attributes = forms.attributes(form, name)
        too_long = "a" * (attributes.get("data-max", 100_000) + 1)
        for text in (*TEXTS, too_long):
            if is_refused(text, attributes):
                assert name in schema.validate({name: text}), (name, text)
        if "data-max" in attributes:
            assert is_refused(too_long, attributes)


def is_refused(text, attributes):
    """Return whether the script refuses a text."""
    return (
        len(text) < attributes.get("minlength", 0)
        or len(text) > attributes.get("data-max", len(text))
        or not re.fullmatch(attributes.get("pattern", ".*"), text)
    )


def test_the_setting_of_the_shortest_password_is_used(make_app):
    with make_app(PASSWORD_MIN="15").app_context():
        assert forms.attributes("sign-up", "password")["minlength"] == 15


class Controls(HTMLParser):
    """Collects the controls of a page by their names."""

    def __init__(self, html):
        super().__init__()
        self.found = {}
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag in {"input", "textarea"} and "name" in attributes:
            self.found.setdefault(attributes["name"], attributes)


@pytest.mark.parametrize(
    ("path", "form", "names"),
    [
        ("/signup", "sign-up", ["username", "password"]),
        ("/signin", "sign-in", ["username", "password"]),
        ("/reset", "reset-by-link", ["password"]),
        ("/reset", "reset-by-code", ["username", "recovery_code"]),
        ("/write", "post", ["title", "content"]),
        ("/settings", "profile", ["username", "display_name", "bio", "password"]),
        ("/settings", "recovery-codes", ["current_password"]),
        ("/settings", "invitation", ["note", "uses"]),
        ("/p/{id}", "comment", ["content"]),
    ],
)
def test_pages_have_controls_with_these_attributes(anonymous, post, path, form, names):
    controls = Controls(anonymous.get(path.format(**post)).text).found
    for name in names:
        expected = {key: str(value) for key, value in forms.attributes(form, name).items()}
        assert expected.items() <= controls[name].items(), name


def test_the_script_makes_images_smaller_that_the_service_refuses():
    script = (ROOT / "posting" / "static" / "images.js").read_text()
    assert f"MAX_PIXELS = {child.MAX_PIXELS:_};" in script
    assert f"MAX_LENGTH = {child.MAX_SIDE:_};" in script


def test_only_images_that_the_api_accepts_are_offered(anonymous):
    assert forms.image_types() == "image/png,image/jpeg,image/webp,image/gif"
    assert f'accept="{forms.image_types()}"' in anonymous.get("/write").text
