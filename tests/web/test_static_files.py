"""Static files are in memory, except while somebody develops."""

import shutil

import pytest

from posting.web import system
from posting.web.system import DIGEST, FOLDER

VERSION = f"{DIGEST}-en"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the folder, as if the code had been installed there."""
    folder = shutil.copytree(FOLDER, tmp_path / "static")
    monkeypatch.setattr(system, "FOLDER", folder)
    return folder


def test_a_file_that_an_upgrade_has_replaced_stays_the_same(anonymous, folder):
    before = anonymous.get(f"/static/{VERSION}/main.js")
    (folder / "main.js").write_text("// of the next version")
    (folder / "new.js").write_text("// of the next version")
    after = anonymous.get(f"/static/{VERSION}/main.js")
    assert after.data == before.data == (FOLDER / "main.js").read_bytes()
    assert "immutable" in after.headers["Cache-Control"]
    assert anonymous.get(f"/static/{VERSION}/new.js").status_code == 404


def test_the_development_server_reads_a_file_again(app, anonymous, folder, monkeypatch):
    monkeypatch.setitem(app.config, "DEBUG", True)
    (folder / "main.js").write_text("// changed")
    response = anonymous.get(f"/static/{VERSION}/main.js")
    assert response.text == "// changed"
    assert response.headers["Cache-Control"] == "no-cache"


def test_a_file_is_sent_once(anonymous):
    first = anonymous.get(f"/static/{VERSION}/main.js")
    for name in ("ETag", "Last-Modified"):
        condition = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}[name]
        again = anonymous.get(
            f"/static/{VERSION}/main.js", headers={condition: first.headers[name]}
        )
        assert (again.status_code, again.data) == (304, b"")


@pytest.mark.parametrize("path", ["/static/x/../wsgi.py", "/static/x/none.js", "/docs/none.js"])
def test_other_files_are_not_found(anonymous, path):
    assert anonymous.get(path).status_code == 404
