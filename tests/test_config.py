"""Settings: parsed strictly at the start, with a one-line error for each mistake."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import click
import pytest
from sqlalchemy import make_url

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
        ("DATABASE_URL", "sqlite:///a.db\nPOSTING_SIGNUP=closed\n#"),
        ("INSTANCE_PATH", "data"),
        ("INSTANCE_PATH", "/data\nPOSTING_SIGNUP=closed\n#"),
        ("PUBLIC_URL", "example.org"),
        ("PUBLIC_URL", "ftp://example.org"),
        ("PUBLIC_URL", "https://example.org/?x=1"),
        ("PUBLIC_URL", "https://ada@example.org"),
        ("PUBLIC_URL", "https://example.org:port"),
        ("PUBLIC_URL", "https://example.org/a//b"),
        ("PUBLIC_URL", "https://exa mple.org"),
        ("PUBLIC_URL", "https://example.org:99999"),
        ("PUBLIC_URL", "https://1.2.3.999"),
        ("PUBLIC_URL", "https://xn--zva"),
        ("NAME", "\u3164"),
        ("NAME", "\u2800 "),
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
        ("READING", "nobody"),
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
        ("postgresql://u:p@h:1#2/d", "has a character that must be encoded"),
        ("postgresql://u:12/x?secret=y@h/d", "has a character that must be encoded"),
        ("postgresql://u?secret=y@h/d", "has a character that must be encoded"),
        # SQLAlchemy would take the host for a user, and the query for part of a password.
        ("postgresql://h:5432/d?user=me@corp", "has a character that must be encoded"),
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


@pytest.mark.parametrize("character", "@#?/:")
@pytest.mark.parametrize(
    "password", ["se{}cret", "{}cret", "cret{}", "12{}cret", "se{}cr{}et", "{}"]
)
def test_no_part_of_a_password_becomes_the_host(character, password):
    """A password that is cut at a character would be printed as the host that does not respond."""
    url = "postgresql://u:{}@h:5432/d"
    error = ""
    try:
        cut = make_url(config.parse_database_url(url.format(password.replace("{}", character))))
    except ValueError as refused:
        error = str(refused)
    if error:
        assert "cret" not in error
        assert "write @ as %40, # as %23, ? as %3F, / as %2F and : as %3A" in error
    else:
        assert (cut.username, cut.host, cut.port, cut.database) == ("u", "h", 5432, "d")
    encoded = config.parse_database_url(url.format(password.replace("{}", quote(character, ""))))
    assert make_url(encoded).password == password.replace("{}", character)


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
        ("X", "docs/settings.md lists them all."),
        ("", "docs/settings.md lists them all."),
    ],
)
def test_an_unknown_variable_is_a_start_error(monkeypatch, name, advice):
    monkeypatch.setenv(f"POSTING_{name}", "x")
    with pytest.raises(config.StartError) as error:
        create_app(MEMORY)
    assert str(error.value).startswith(f"POSTING_{name} is not a setting; {advice}")


@pytest.mark.parametrize("name", ["posting_signup", "Posting_SIGNUP"])
def test_a_variable_in_lower_case_is_a_start_error(monkeypatch, name):
    monkeypatch.setenv(name, "closed")
    with pytest.raises(config.StartError, match=f"{name} is not .* did you mean POSTING_SIGNUP?"):
        create_app(MEMORY)


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "8111"), ("PORT", ""), ("BIND", "127.0.0.1"), ("MAX_REQUESTS", "9")],
)
def test_a_setting_of_the_server_has_no_prefix(monkeypatch, name, value):
    monkeypatch.setenv(f"POSTING_{name}", value)
    with pytest.raises(config.StartError) as error:
        create_app(MEMORY)
    assert str(error.value) == f"POSTING_{name} is not a setting; its name is {name}."


def test_an_unknown_name_comes_with_the_nearest_setting():
    with pytest.raises(config.StartError, match="did you mean PASSWORD_MIN"):
        create_app(MEMORY | {"PASWORD_MIN": 8})


@pytest.mark.parametrize("service", ["POSTING", "POSTING_POSTGRES"])
def test_variables_of_kubernetes_are_ignored(monkeypatch, service):
    url = "tcp://10.0.0.1:8000"
    for name, value in {
        "SERVICE_HOST": "10.0.0.1",
        "SERVICE_PORT": "8000",
        "SERVICE_PORT_HTTP": "8000",
        "PORT": url,
        "PORT_8000_TCP": url,
        "PORT_8000_TCP_PROTO": "tcp",
        "PORT_8000_TCP_PORT": "8000",
        "PORT_8000_TCP_ADDR": "10.0.0.1",
    }.items():
        monkeypatch.setenv(f"{service}_{name}", value)
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


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_value_means_the_default(monkeypatch, tmp_path, empty):
    overrides = {setting.name: empty for setting in config.SETTINGS}
    assert config.instance_path(overrides) is None
    overrides["INSTANCE_PATH"] = str(tmp_path)
    for name in overrides:
        monkeypatch.setenv(config.PREFIX + name, empty)
    for app in (create_app(overrides), create_app({"INSTANCE_PATH": str(tmp_path)})):
        for setting in config.SETTINGS[1:]:
            assert app.config[setting.name] == setting.default, setting.name


def test_empty_settings_of_the_server_mean_their_defaults(monkeypatch):
    for setting in config.SERVER_SETTINGS:
        monkeypatch.setenv(setting.variable, " ")
    loaded = config.load_server()
    assert {setting.name: setting.default for setting in config.SERVER_SETTINGS}.items() <= (
        loaded.items()
    )


def test_rate_limits_are_off_in_tests():
    assert create_app({"DATABASE_URL": "sqlite://"}).config["RATE_LIMITS"] is True
    assert load()["RATE_LIMITS"] is False
    assert load(RATE_LIMITS="on")["RATE_LIMITS"] is True
    assert load(LIMIT_POSTS="off")["LIMIT_POSTS"] is None


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


@pytest.mark.parametrize("where", ["/", "/d", "localhost/d", "h,i/d"])
def test_the_query_of_a_database_url_may_contain_an_at_sign(where):
    url = config.parse_database_url(f"postgresql://{where}?host=/x&user=me@corp")
    assert make_url(url).query == {"host": "/x", "user": "me@corp"}
    assert make_url(url).username is None


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


@pytest.mark.parametrize("name", ["PUBLIC_URL", "TRUSTED_ORIGINS"])
@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("https://münchen.example", "https://xn--mnchen-3ya.example"),
        ("https://MÜNCHEN.example:8443", "https://xn--mnchen-3ya.example:8443"),
        ("https://straße.example", "https://xn--strae-oqa.example"),  # not strasse
        ("https://例え.テスト", "https://xn--r8jz45g.xn--zckzah"),
        ("https://ü@example", "a host with other letters as xn--…"),
        ("https://ü.example:port", "a host with other letters as xn--…"),
        ("https://ü.example/ü", "a host with other letters as xn--…"),
        ("münchen.example", "a host with other letters as xn--…"),
    ],
)
def test_a_host_in_other_letters_gets_the_hint_to_write_it_in_ascii(name, url, advice):
    with pytest.raises(config.StartError) as error:
        create_app(MEMORY | {name: url})
    rule = f"{name} must have only ASCII characters: write {advice}"
    assert str(error.value) == f"{rule}; it is {url!r}."
    if advice.startswith("https"):
        assert create_app(MEMORY | {name: advice})


def test_the_hint_for_a_host_in_other_letters_has_the_path():
    with pytest.raises(ValueError, match=r"write https://xn--mnchen-3ya\.example/forum$"):
        config.parse_public_url("https://münchen.example/forum")


def test_a_missing_postgres_driver_is_a_start_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(config.StartError, match=r"POSTING_DATABASE_URL names .* pip install"):
        create_app(MEMORY | {"DATABASE_URL": "postgresql://h/d"})


@pytest.fixture
def env_file(monkeypatch, tmp_path):
    """A file `.env` in the working directory, which is read unless a variable forbids it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLASK_SKIP_DOTENV", raising=False)
    return tmp_path / ".env"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("POSTING_SIGNUP: closed", 1),
        ("POSTING_SIGNUP:closed", 1),
        ("POSTING_SIGNUP closed", 1),
        ("POSTING_SIGNUP", 1),
        ("set POSTING_SIGNUP=closed", 1),
        ('"POSTING_SIGNUP"=closed', 1),
        ("POSTING-SIGNUP=closed", 1),
        ("=closed", 1),
        ("\ufeff\r\n# comment\r\n\r\nA=1\r\n\r\nPOSTING_SIGNUP: closed\r\nB=2", 6),
        ("A=1\n\n  POSTING_SIGNUP\n", 3),
        ('A=1\nPOSTING_NAME="Looms\nPOSTING_SIGNUP=closed\n', 2),
        ("A=1\nPOSTING_NAME='Looms' and engines\n", 2),
        ("A=1\nB=x\0y\n", 2),
    ],
)
def test_a_line_of_the_file_that_sets_nothing_is_a_start_error(env_file, text, line):
    env_file.write_bytes(text.encode())
    with pytest.raises(config.StartError) as error:
        config.check_env_files()
    assert str(error.value).startswith(f"{env_file}, line {line} is not NAME=value, such as ")
    assert "\n" not in str(error.value)
    assert "Looms" not in str(error.value)  # it might be a password


def test_the_command_of_flask_refuses_such_a_file_too(env_file):
    """It has read the file before, and has skipped the line."""
    env_file.write_text("POSTING_SIGNUP: closed")
    create_app(MEMORY)
    with (
        click.Context(click.Command("run")),
        pytest.raises(config.StartError, match="line 1 is not NAME=value"),
    ):
        create_app(MEMORY)


def test_a_file_that_is_not_utf_8_is_a_start_error(env_file):
    env_file.write_bytes(b"A=1\n\nPOSTING_NAME=Caf\xe9\n")
    with pytest.raises(config.StartError) as error:
        config.check_env_files()
    assert str(error.value) == f"{env_file}, line 3 is not UTF-8. Save the file as UTF-8."


def test_the_file_of_an_option_is_read(tmp_path):
    file = tmp_path / "my.env"
    file.write_text("POSTING_DATABASE_URL=sqlite://\nPOSTING_SIGNUP=shut\n")
    process = subprocess.run(
        [sys.executable, "-m", "flask", f"--env-file={file}", "routes"],
        cwd=Path(config.__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stdout) == (3, "")
    [line] = process.stderr.splitlines()
    assert line.startswith("posting: POSTING_SIGNUP must be one of: open, approval, ")


def test_a_valid_file_is_read(monkeypatch, env_file):
    names = {"POSTING_NAME": "Caf\xe9 = bar", "POSTING_SIGNUP": "", "POSTING_DESCRIPTION": "x # y"}
    for name in (*names, "POSTING_PAGES"):
        monkeypatch.setenv(name, "on")
        if name in names:
            monkeypatch.delenv(name)
    env_file.write_text(
        "\ufeff# comment\n\nexport POSTING_NAME=Caf\xe9 = bar # comment\n  \n"
        "  POSTING_SIGNUP = \nPOSTING_DESCRIPTION='x # y'\nPOSTING_PAGES=off\n\n"
    )
    config.load_env_files()
    assert names.items() <= dict(os.environ).items()
    assert os.environ["POSTING_PAGES"] == "on"  # the environment takes precedence


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("${WEAVER}", "Ada"),
        ("a${ABOVE}b", "a1b"),
        ('"${WEAVER}"', "Ada"),
        ("'${WEAVER}'", "Ada"),
        ("${MISSING:-Looms}", "Looms"),
        ("${MISSING:-}", ""),
        ("p$ss$$w$WEAVER$", "p$ss$$w$WEAVER$"),
        ("${:-$}{WEAVER}", "${WEAVER}"),
        ("'${:-$}{WEAVER}'", "${WEAVER}"),
        ("${WEAVER", "${WEAVER"),
    ],
)
def test_a_value_may_contain_another_variable(monkeypatch, env_file, value, result):
    for name in ("ABOVE", "POSTING_NAME"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("WEAVER", "Ada")
    env_file.write_text(f"ABOVE=1\nPOSTING_NAME={value}\n")
    for _ in range(2):  # the second time, the environment has the variables of the file
        config.load_env_files()
        assert os.environ["POSTING_NAME"] == result


@pytest.mark.parametrize(
    "value", ["${LOOMS}", "'${LOOMS}'", "x${}", "${BELOW}", "${BELOW:-1}${LOOMS}"]
)
def test_a_variable_that_is_not_set_is_a_start_error(monkeypatch, env_file, value):
    """It would be empty, and an empty setting means the default."""
    env_file.write_text(f"A=1\n\nPOSTING_SIGNUP={value}\nBELOW=closed\n")
    for _ in range(2):
        with pytest.raises(config.StartError) as error:
            config.check_env_files()
        assert str(error.value).startswith(f"{env_file}, line 3 has ${{…}} with the name of a va")
        assert "LOOMS" not in str(error.value)  # it might be part of a password
        monkeypatch.setenv("BELOW", "closed")  # as if Flask had read the file


def test_a_variable_may_contain_its_own_value_in_the_environment(monkeypatch, env_file):
    monkeypatch.setenv("WEAVER", "Ada")
    env_file.write_text("WEAVER=${WEAVER} and Grace\n")
    config.check_env_files()


@pytest.mark.parametrize("text", ["", "\n", "# only a comment"])
def test_a_file_without_settings_is_valid(env_file, text):
    env_file.write_text(text)
    config.check_env_files()


def test_a_file_is_not_checked_if_flask_does_not_read_it(monkeypatch, env_file):
    env_file.write_text("POSTING_SIGNUP: closed\n")
    monkeypatch.setenv("FLASK_SKIP_DOTENV", "1")
    config.check_env_files()
    config.load_env_files()


def test_only_config_reads_the_environment():
    modules = Path(config.__file__).parent.rglob("*.py")
    assert [path.name for path in modules if "os.environ" in path.read_text()] == ["config.py"]


class TestMail:
    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("smtp://localhost", ("localhost", 25, False, False, None, None)),
            ("smtp://mail.example/", ("mail.example", 25, False, False, None, None)),
            ("smtp://a:b@mail.example", ("mail.example", 587, False, False, "a", "b")),
            ("smtps://a:b@mail.example", ("mail.example", 465, True, True, "a", "b")),
            ("smtp://[::1]:2525?tls=required", ("::1", 2525, False, True, None, None)),
            ("smtps://a%40b:p%3A%2F%23%3F@h:1", ("h", 1, True, True, "a@b", "p:/#?")),
        ],
    )
    def test_a_url_names_a_mail_server(self, url, expected):
        server = config.parse_smtp_url(url)
        assert (server.host, server.port, server.begins_encrypted) == expected[:3]
        assert (server.must_encrypt, server.user, server.password) == expected[3:]
        assert expected[5] is None or "password" not in repr(server)

    @pytest.mark.parametrize(
        "url",
        [
            *("localhost", "smtp://", "http://a", "smtp://h:0", "smtp://h:99999", "smtp://h:x"),
            *(
                "smtp://:b@h",
                "smtp://a:@h",
                "smtp://a@h",
                "smtp://a:b@c@h",
                "smtp://h?tls=no",
                "smtp://h#x",
                "smtp://h/x",
            ),
            "smtp://a:secret@h h",
        ],
    )
    def test_another_url_is_refused_without_its_password(self, url):
        with pytest.raises(config.StartError) as error:
            create_app(MEMORY | MAIL | {"SMTP_URL": url})
        assert str(error.value).startswith("SMTP_URL must ") or "port" in str(error.value)
        assert "secret" not in str(error.value)

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("posting@example.org", ("", "posting", "example.org")),
            ("Elm Street <a.b+c@example.org>", ("Elm Street", "a.b+c", "example.org")),
            ('"Ådä, Q" <a@b>', ("Ådä, Q", "a", "b")),
            ("A <a@b>", ("A", "a", "b")),
        ],
    )
    def test_a_sender_has_an_address_and_perhaps_a_name(self, value, expected):
        assert config.parse_mail_from(value) == expected

    @pytest.mark.parametrize(
        "value",
        [
            "a",
            "a@",
            "@b",
            "a..b@c",
            "=?utf-8?q?x?=@b",
            "a@b..c",
            "a@b c",
            "a b <c>",
            "a\nb <c@d>",
            "ä@b.example",
            "a@b, c@d",
        ],
    )
    def test_another_sender_is_refused(self, value):
        with pytest.raises(config.StartError, match="MAIL_FROM must look like"):
            create_app(MEMORY | MAIL | {"MAIL_FROM": value})

    @pytest.mark.parametrize("name", ["MAIL_FROM", "PUBLIC_URL"])
    def test_a_mail_server_needs_more(self, name):
        with pytest.raises(config.StartError) as error:
            create_app(MEMORY | MAIL | {name: ""})
        assert str(error.value) == f"POSTING_SMTP_URL needs POSTING_{name} as well. Set both."


MAIL = {
    "SMTP_URL": "smtp://localhost",
    "MAIL_FROM": "posting@example.org",
    "PUBLIC_URL": "https://example.org",
}
