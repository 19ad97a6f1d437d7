"""The key that signs cursors: made once, kept from others, changed without breaking a page."""

import stat

import pytest

from posting import config, create_app, secret_key
from tests.helpers.assertions import next_url, problem

OLD, NEW = "an-old-key-of-some-length", "a new key, of some length"


def loaded(**given):
    return create_app({"TESTING": True, "DATABASE_URL": "sqlite://"} | given).config


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("SECRET_KEY", "SECRET_KEY_FILE", "SECRET_KEY_FALLBACKS"):
        monkeypatch.delenv(config.PREFIX + name, raising=False)


def test_it_is_made_once_for_its_owner_alone(tmp_path):
    path = tmp_path / "instance" / "secret_key"
    key = secret_key._made_once(path)
    assert len(key) == 43
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret_key._made_once(path) == key
    assert [file.name for file in path.parent.iterdir()] == ["secret_key"]


def test_it_is_read_from_a_file(tmp_path):
    path = tmp_path / "key"
    path.write_text("a key of some length\n")
    path.chmod(0o640)
    assert loaded(SECRET_KEY_FILE=str(path))["SECRET_KEY"] == "a key of some length"


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o644, 0o666])
def test_a_file_for_everybody_is_refused(tmp_path, mode):
    path = tmp_path / "secret_key"
    path.write_text("a key of some length")
    path.chmod(mode)
    with pytest.raises(config.StartError, match=f"chmod o= {path}"):
        loaded(SECRET_KEY_FILE=str(path))
    with pytest.raises(config.StartError, match=f"chmod o= {path}"):
        secret_key._made_once(path)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(config.StartError, match="POSTING_SECRET_KEY"):
        secret_key._made_once(tmp_path / "file" / "secret_key")


def test_tests_leave_no_key_behind(monkeypatch):
    monkeypatch.setattr(secret_key, "_made_once", lambda _: pytest.fail("made a key"))
    assert loaded()["SECRET_KEY"] != loaded()["SECRET_KEY"]


def test_pages_go_on_while_the_key_changes(make_app, alice):
    for title in ("One", "Two", "Three"):
        alice.post_titled(title)

    def read(url, **keys):
        return make_app(**keys).test_client().get(url)

    second = next_url(read("/posts?limit=1", SECRET_KEY=OLD))
    both = {"SECRET_KEY": NEW, "SECRET_KEY_FALLBACKS": f"yet-another-old-key {OLD}"}
    assert [post["title"] for post in read(second, **both).json] == ["Two"]
    problem(read(second, SECRET_KEY=NEW), 422)
    third = next_url(read(second, **both))
    assert [post["title"] for post in read(third, SECRET_KEY=NEW).json] == ["One"]
    problem(read(third, SECRET_KEY=OLD), 422)
