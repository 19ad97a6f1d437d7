"""The files that an operator adds: a text about the community, and a style sheet."""

import os

import pytest

from tests.helpers.pages import Reader, links


def test_about_shows_what_the_operator_wrote(make_app, read, tmp_path):
    read("/about", 404)
    assert "/about" not in links(read("/"))
    file = tmp_path / "about.md"
    file.write_text("# We\n\nAll **welcome**.")
    client = make_app(INSTANCE_PATH=str(tmp_path)).test_client()
    assert "/about" in links(Reader(client.get("/").text))
    assert "All welcome" in Reader(client.get("/about").text).text
    file.write_text("Changed without a commit")
    response = client.get("/about")
    assert "Changed without a commit" in response.text
    assert response.headers["Cache-Control"] == "no-cache"


def test_an_operator_adds_a_style_sheet(make_app, anonymous, tmp_path):
    assert anonymous.get("/custom.css").status_code == 404
    (tmp_path / "custom.css").write_text("body { color: red }")
    client = make_app(INSTANCE_PATH=str(tmp_path)).test_client()
    assert Reader(client.get("/").text).all("link", href="/custom.css")
    with client.get("/custom.css") as response:
        assert (response.text, response.mimetype) == ("body { color: red }", "text/css")


@pytest.mark.parametrize("name", ["about.md", "custom.css"])
def test_a_file_that_cannot_be_read_is_not_shown(make_app, tmp_path, monkeypatch, caplog, name):
    """The service runs as another user than the operator."""
    path = f"/{name.removesuffix('.md')}"
    (tmp_path / name).write_text("x")
    access = os.access
    monkeypatch.setattr(os, "access", lambda file, mode: file.name != name and access(file, mode))
    client = make_app(INSTANCE_PATH=str(tmp_path)).test_client()
    assert path not in client.get("/").text
    assert client.get(path).status_code == 404
    assert f"{tmp_path / name} cannot be read by the user of the service." in caplog.text
