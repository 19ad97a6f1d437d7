"""Settings: parsed strictly at the start, with a one-line error for each mistake."""

import sys
from pathlib import Path

import pytest

from posting import config, create_app

MEMORY = {"TESTING": True, "DATABASE_URL": "sqlite://"}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for setting in config.SETTINGS:
        monkeypatch.delenv(config.PREFIX + setting.name, raising=False)


def load(**overrides):
    return create_app(MEMORY | overrides).config


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://localhost/x"),
        ("DATABASE_URL", "posting.db"),
        ("DATABASE_URL", "postgresql://host:port/name"),
        ("INSTANCE_PATH", "data"),
        ("PUBLIC_URL", "example.org"),
        ("PUBLIC_URL", "ftp://example.org"),
        ("PUBLIC_URL", "https://example.org/?x=1"),
        ("PUBLIC_URL", "https://ada@example.org"),
        ("PUBLIC_URL", "https://example.org:port"),
        ("PUBLIC_URL", "https://example.org/a//b"),
        ("PUBLIC_URL", "https://exa mple.org"),
        ("PROXY_HOPS", "-1"),
        ("PROXY_HOPS", "one"),
        ("PROXY_HOPS", "11"),
        ("TRUSTED_ORIGINS", "app.example.org"),
        ("TRUSTED_ORIGINS", "https://app.example.org/"),
        ("TRUSTED_ORIGINS", "https://app.example.org, https://b.example"),
        ("TRUSTED_ORIGINS", "https://App.example.org"),
        ("TRUSTED_ORIGINS", "null"),
        ("TRUSTED_ORIGINS", "https://app.example.org:443"),
        ("TRUSTED_ORIGINS", "http://app.example.org:80"),
        ("LOG_FORMAT", "xml"),
        ("PASSWORD_MIN", "7"),
        ("PASSWORD_MIN", "257"),
        ("PASSWORD_MIN", "8.0"),
        ("PASSWORD_HASH", "md5"),
        ("PASSWORD_HASH", "scrypt:1000:8:1"),
        ("PASSWORD_HASH", "scrypt:33554432:8:1"),
        ("PASSWORD_HASH", "scrypt:1048576:8:2"),
        ("PROXY_HOPS", "\N{ARABIC-INDIC DIGIT ONE}"),
        ("RATE_LIMITS", "no"),
        ("LIMIT_POSTS", "60"),
        ("LIMIT_POSTS", "0/hour"),
        ("LIMIT_POSTS", "60/week"),
        ("MAX_JSON_BYTES", "0"),
    ],
)
def test_an_invalid_value_is_a_start_error(monkeypatch, name, value):
    with pytest.raises(config.StartError) as error:
        create_app(MEMORY | {name: value})
    assert name in str(error.value)
    assert "\n" not in str(error.value)
    monkeypatch.setenv(f"POSTING_{name}", value)
    overrides = {key: item for key, item in MEMORY.items() if key != name}
    with pytest.raises(config.StartError, match=f"POSTING_{name}"):
        create_app(overrides)


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("sqlite://posting.db", "is missing a slash: use sqlite:///posting.db"),
        ("sqlite://var/lib/posting.db", "is missing a slash: use sqlite:///posting.db"),
        ("sqlite://localhost/posting.db", "is missing a slash: use sqlite:///posting.db"),
        ("postgresql://u:p@h:port/d", "has a port that is not a number from 1 to 65535"),
        ("postgresql://h:70000/d", "has a port that is not a number from 1 to 65535"),
        ("postgresql://h:0/d", "has a port that is not a number from 1 to 65535"),
        ("postgresql://u:secret/word@h/d", "has a port that is not a number from 1 to 65535"),
        ("sqlite:posting.db", "must start with sqlite:/// or postgresql://"),
    ],
)
def test_a_malformed_database_url_is_a_start_error(monkeypatch, url, rule):
    monkeypatch.setenv("POSTING_DATABASE_URL", url)
    with pytest.raises(config.StartError) as error:
        create_app({"TESTING": True})
    assert str(error.value).startswith(f"POSTING_DATABASE_URL {rule}")
    assert "secret" not in str(error.value)
    assert "\n" not in str(error.value)


def test_an_instance_folder_that_cannot_be_created_is_a_start_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(config.StartError, match="another with POSTING_INSTANCE_PATH"):
        create_app({"TESTING": True, "INSTANCE_PATH": str(tmp_path / "file" / "instance")})


@pytest.mark.parametrize("name", ["PASWORD_MIN", "POSTING_PASSWORD_MIN", "database_url"])
def test_an_unknown_name_is_a_start_error(name):
    with pytest.raises(config.StartError, match=f"{name} is not a setting"):
        create_app(MEMORY | {name: "x"})


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("PASWORD_MIN", "did you mean POSTING_PASSWORD_MIN?"),
        ("MAX_IMAGE_SIZE", "did you mean POSTING_MAX_"),
        ("PUBLICURL", "did you mean POSTING_PUBLIC_URL?"),
        ("X", "the README lists them all."),
        ("", "the README lists them all."),
    ],
)
def test_an_unknown_variable_is_a_start_error(monkeypatch, name, advice):
    monkeypatch.setenv(f"POSTING_{name}", "x")
    with pytest.raises(config.StartError) as error:
        create_app(MEMORY)
    assert str(error.value).startswith(f"POSTING_{name} is not a setting; {advice}")


def test_an_unknown_name_comes_with_the_nearest_setting():
    with pytest.raises(config.StartError, match="did you mean PASSWORD_MIN"):
        create_app(MEMORY | {"PASWORD_MIN": 8})


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("SECRET_KEY", "is no longer needed; remove it."),
        ("SECRET_KEY_FILE", "is no longer needed; remove it."),
        ("SECRET_KEY_FALLBACKS", "is no longer needed; remove it."),
        ("MAX_UPLOAD_BYTES", "POSTING_MAX_IMAGE_BYTES sets the size of uploads."),
    ],
)
def test_a_removed_setting_is_a_start_error(monkeypatch, name, advice):
    with pytest.raises(config.StartError) as error:
        create_app(MEMORY | {name: "x" * 16})
    assert str(error.value).startswith(f"{name} ")
    assert str(error.value).endswith(advice)
    monkeypatch.setenv(f"POSTING_{name}", "x" * 16)
    with pytest.raises(config.StartError) as error:
        create_app(MEMORY)
    assert str(error.value).startswith(f"POSTING_{name} ")
    assert str(error.value).endswith(advice)


def test_no_setting_is_both_current_and_removed():
    assert config.REMOVED.keys().isdisjoint(setting.name for setting in config.SETTINGS)


def test_variables_of_kubernetes_are_ignored(monkeypatch):
    for service in ("POSTING", "POSTING_POSTGRES"):
        port = f"{service}_PORT_8000_TCP"
        for name in (
            *(f"{service}_SERVICE_HOST", f"{service}_SERVICE_PORT", f"{service}_SERVICE_PORT_HTTP"),
            *(f"{service}_PORT", port, f"{port}_PROTO", f"{port}_PORT", f"{port}_ADDR"),
        ):
            monkeypatch.setenv(name, "tcp://10.0.0.1:8000")
    create_app(MEMORY)


def test_the_database_is_in_the_instance_folder(tmp_path):
    create_app({"INSTANCE_PATH": str(tmp_path)})
    assert "posting.db" in {path.name for path in tmp_path.iterdir()}


def test_overrides_take_precedence_over_the_environment(monkeypatch):
    monkeypatch.setenv("POSTING_PASSWORD_MIN", "12")
    assert load()["PASSWORD_MIN"] == 12
    assert load(PASSWORD_MIN=14)["PASSWORD_MIN"] == 14


def test_settings_have_their_defaults():
    values = load()
    for setting in config.SETTINGS:
        if setting.name not in {"DATABASE_URL", "PASSWORD_HASH", "RATE_LIMITS"}:
            assert values[setting.name] == setting.default


def test_rate_limits_are_off_in_tests():
    assert create_app({"DATABASE_URL": "sqlite://"}).config["RATE_LIMITS"] == "on"
    assert load()["RATE_LIMITS"] == "off"
    assert load(RATE_LIMITS="on")["RATE_LIMITS"] == "on"
    assert load(LIMIT_POSTS="")["LIMIT_POSTS"] is None


def test_password_hashes_are_cheap_in_tests():
    assert load()["PASSWORD_HASH"] == config.CHEAP_PASSWORD_HASH
    production = create_app({"DATABASE_URL": "sqlite://"})
    assert production.config["PASSWORD_HASH"] == "scrypt:32768:8:3"
    assert load(PASSWORD_HASH="scrypt:1024:8:1")["PASSWORD_HASH"] == "scrypt:1024:8:1"


@pytest.mark.parametrize(
    "url", ["postgres://u:p@h/d", "postgresql://u:p@h/d", "postgresql+psycopg://u:p@h/d"]
)
def test_every_postgres_url_selects_psycopg(url):
    assert config.parse_database_url(url) == "postgresql+psycopg://u:p@h/d"


@pytest.mark.parametrize(
    ("url", "normalized"),
    [
        ("https://Example.org:443/", "https://example.org"),
        ("http://example.org:80/community/", "http://example.org/community"),
        ("https://example.org:8443/A/b", "https://example.org:8443/A/b"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_a_public_url_is_normalized(url, normalized):
    assert config.parse_public_url(url) == normalized


def test_a_missing_postgres_driver_is_a_start_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(config.StartError, match=r"POSTING_DATABASE_URL names .* pip install"):
        create_app(MEMORY | {"DATABASE_URL": "postgresql://h/d"})


def test_only_config_reads_the_environment():
    modules = Path(config.__file__).parent.rglob("*.py")
    assert [path.name for path in modules if "os.environ" in path.read_text()] == ["config.py"]
