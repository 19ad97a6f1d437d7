"""Settings: their names, parsers and defaults.

In this package, nothing else reads the environment. A setting `NAME` comes from the mapping passed
to `create_app`, else from the variable `POSTING_NAME`, else from its default. Settings of the
server, such as `PORT`, have no prefix. An empty value means the default. `docs/settings.md`
describes each setting.
"""

import difflib
import errno
import io
import os
import re
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import click
import nh3
from dotenv import find_dotenv
from dotenv.parser import parse_stream
from dotenv.variables import Variable, parse_variables
from flask import Flask
from flask.cli import load_dotenv
from flask.helpers import get_load_dotenv

from posting.characters import has_visible
from posting.languages import ENGLISH, LANGUAGES
from posting.smtp import parse_mail_from, parse_smtp_url

VERSION = "1.1.0"
SIGNUP = ("open", "approval", "invitation", "closed")  # who may create an account
INVITATIONS = ("moderators", "members")  # who may invite others
MODERATION_LOG = ("moderators", "public")
READING = ("everyone", "members")  # who may read
WEBHOOKS = ("public", "all", "off")  # the addresses that webhooks may have
MAX_NAME, MAX_DESCRIPTION = 60, 200  # characters
FIXED = "FIXED"  # the names of the settings that the operator has set
ABOUT = "about.md"  # the operator's files in the instance folder
CUSTOM_CSS = "custom.css"
PREFIX = "POSTING_"
DEFAULT_PORT = 8000
OTHER_PARTS = 2**20  # bytes of a form besides its file
UNITS = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}
ORIGIN = r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?"
ENCODED = "in a password, write @ as %40, # as %23, ? as %3F, / as %2F and : as %3A"
READ_SECONDS = 2  # for each query outside of a transaction
THREADS = 8  # of each worker of the server, which has a database connection for each
CHEAP_PASSWORD_HASH = "scrypt:128:8:1"  # noqa: S105 - parameters, for tests


class StartError(click.ClickException):
    """The service cannot start; the message says why and what to do."""

    exit_status = 3  # systemd does not restart the service after it

    def __str__(self) -> str:
        return self.message

    def exit(self) -> NoReturn:
        """Print the message and end the process."""
        print(f"posting: {self.message}", file=sys.stderr)
        sys.exit(self.exit_status)


class PortError(StartError):
    """The server cannot listen; starting again later may succeed."""

    exit_status = 1  # systemd restarts the service after it


@dataclass(frozen=True)
class Rate:
    """A number of requests per second, minute, hour or day."""

    amount: int
    unit: str

    @cached_property
    def window(self) -> timedelta:
        return UNITS[self.unit]

    def __str__(self) -> str:
        return f"{self.amount}/{self.unit}"


@dataclass(frozen=True)
class Setting:
    """A setting; `parse` returns its value, or raises ValueError with the rule that is broken."""

    name: str
    parse: Callable[[str], Any]
    default: Any
    prefix: str = PREFIX

    @property
    def variable(self) -> str:
        return self.prefix + self.name


def parse_path(value: str) -> str:
    if not Path(value).is_absolute() or "\n" in value:
        raise ValueError("must be an absolute path")
    return value


def integer(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", value) or not minimum <= int(value) <= maximum:
            raise ValueError(f"must be a whole number from {minimum} to {maximum}")
        return int(value)

    return parse


def one_line(maximum: int) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if len(value) > maximum or not value.isprintable():
            raise ValueError(f"must be one line of at most {maximum} characters")
        if value and not has_visible(value):
            raise ValueError("must have a visible character")
        return value

    return parse


def choice(*choices: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(f"must be one of: {', '.join(choices)}")
        return value

    return parse


def parse_switch(value: str) -> bool:
    return choice("on", "off")(value) == "on"


def parse_rate(value: str) -> Rate | None:
    if value == "off":
        return None
    match = re.fullmatch(rf"([1-9]\d{{0,6}})/({'|'.join(UNITS)})", value)
    if match is None:
        raise ValueError("must look like 60/hour (or a second, minute or day), or be off")
    return Rate(int(match[1]), match[2])


def parse_database_url(value: str) -> str:
    scheme, _, rest = value.partition("://")
    if "\n" in value:
        raise ValueError("must be one line")
    if value.startswith("sqlite://"):
        if rest and rest[0] not in "/?":
            raise ValueError(
                "is missing a slash: use sqlite:///posting.db in the instance folder, "
                "or sqlite:////var/lib/posting/posting.db with an absolute path"
            )
        return value
    if rest and scheme in {"postgres", "postgresql", "postgresql+psycopg"}:
        # Such a character would end the password, and messages would show the rest of it as the
        # host.
        user, _, where = rest.rpartition("@")
        if re.match(r"[^:@?#/]*/[^:@?#]*\?", rest):  # there is no user, and an @ is in the query
            user, where = "", rest
        if re.search("[@#?/]", user) or "#" in where:
            raise ValueError(f"has a character that must be encoded; {ENCODED}")
        try:
            port = urlsplit(f"//{where}").port
        except ValueError:
            port = 0
        if port == 0:
            raise ValueError(f"has a port that is not a number from 1 to 65535; {ENCODED}")
        return f"postgresql+psycopg://{rest}"
    raise ValueError("must start with sqlite:/// or postgresql://")


def parse_public_url(value: str) -> str:
    if not value.isascii():
        raise ValueError(_ascii_advice(value))
    match = re.fullmatch(rf"({ORIGIN})((?:/[\w.~-]+)*)/*", value, re.ASCII | re.IGNORECASE)
    if match is None:
        raise ValueError("must look like https://example.org or https://example.org/community")
    if not is_base_url(value):
        raise ValueError("has an invalid host or port")
    origin, path = match[1].lower(), match[2]
    default_port = ":443" if origin.startswith("https:") else ":80"
    return origin.removesuffix(default_port) + path


def _ascii_advice(url: str) -> str:
    """Return the rule that a URL with other letters breaks, and the URL in ASCII if there is one.

    The parser of nh3 converts a host as browsers do. The codec of Python would make ss of ß.
    """
    rule = "must have only ASCII characters"
    match = re.fullmatch("(https?://[^/]+)([!-~]*)", url, re.IGNORECASE)
    if match:
        with suppress(ValueError):
            cleaner = nh3.Cleaner(url_relative=("rewrite_with_base", match[1]), link_rel=None)
            origin = cleaner.clean('<a href="/"></a>').split('"')[1].removesuffix("/")
            return f"{rule}: write {parse_public_url(origin + match[2])}"
    return f"{rule}: write a host with other letters as xn--…"


def is_base_url(url: str) -> bool:
    """Return whether feeds can make relative URLs absolute with a URL."""
    try:
        nh3.Cleaner(url_relative=("rewrite_with_base", url))
    except ValueError:
        return False
    return True


def parse_origins(value: str) -> frozenset[str]:
    origins = frozenset(value.split())
    for origin in origins:
        if not origin.isascii():
            raise ValueError(_ascii_advice(origin))
    if not all(re.fullmatch(ORIGIN, origin) for origin in origins):
        raise ValueError("must be origins such as https://example.org, separated by spaces")
    if any(re.fullmatch("https:.*:443|http:.*:80", origin) for origin in origins):
        raise ValueError("must not name a default port, which browsers leave out")
    return origins


def parse_scrypt_parameters(value: str) -> str:
    if not re.fullmatch(r"scrypt:\d{1,8}:\d{1,3}:\d{1,3}", value):
        raise ValueError("must look like scrypt:32768:8:3 (N, r and p)")
    n, r, p = (int(part) for part in value.split(":")[1:])
    if n < 128 or n & (n - 1) or not r or not p or 132 * n * r * p >= 2**31:
        raise ValueError("needs an N of 128 or more, a power of two, and N * r * p under 2**24")
    return value


def parse_address(value: str) -> str:
    if re.fullmatch("unix:/.+|[0-9A-Za-z.-]+", value):
        return value
    if re.fullmatch(r"\[?[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*\]?", value):  # IPv6
        return value.strip("[]")
    raise ValueError("must be an address without a port, or unix:/path")


INSTANCE_PATH = Setting("INSTANCE_PATH", parse_path, None)
LOG_FORMAT = Setting("LOG_FORMAT", choice("text", "json"), "text")
METRICS = Setting("METRICS", parse_switch, default=False)
SETTINGS = (
    INSTANCE_PATH,
    Setting("DATABASE_URL", parse_database_url, "sqlite:///posting.db"),
    Setting("PUBLIC_URL", parse_public_url, None),
    Setting("PROXY_HOPS", integer(0, 10), 0),
    Setting("NAME", one_line(MAX_NAME), "Posting"),
    Setting("DESCRIPTION", one_line(MAX_DESCRIPTION), ""),
    Setting("LANGUAGE", choice(*LANGUAGES), ENGLISH),
    Setting("SMTP_URL", parse_smtp_url, None),
    Setting("MAIL_FROM", parse_mail_from, None),
    Setting("MAIL_RATE", parse_rate, Rate(100, "minute")),
    Setting("WEBHOOKS", choice(*WEBHOOKS), "public"),
    Setting("PAGES", parse_switch, default=True),
    Setting("READING", choice(*READING), "everyone"),
    Setting("TRUSTED_ORIGINS", parse_origins, frozenset()),
    LOG_FORMAT,
    Setting("LOG_REQUESTS", parse_switch, default=True),
    Setting("RESPONSE_CACHE", parse_switch, default=True),
    METRICS,
    Setting("PASSWORD_MIN", integer(8, 256), 8),
    Setting("PASSWORD_HASH", parse_scrypt_parameters, "scrypt:32768:8:3"),
    Setting("SIGNUP", choice(*SIGNUP), "open"),
    Setting("INVITATIONS", choice(*INVITATIONS), "moderators"),
    Setting("MODERATION_LOG", choice(*MODERATION_LOG), "moderators"),
    Setting("RATE_LIMITS", parse_switch, default=True),
    Setting("LIMIT_SIGNIN", parse_rate, Rate(20, "hour")),
    Setting("LIMIT_PASSWORDS", parse_rate, Rate(60, "hour")),
    Setting("LIMIT_SIGNUP", parse_rate, Rate(60, "hour")),
    Setting("LIMIT_LINKS", parse_rate, Rate(3, "hour")),
    Setting("LIMIT_POSTS", parse_rate, Rate(300, "hour")),
    Setting("LIMIT_COMMENTS", parse_rate, Rate(600, "hour")),
    Setting("LIMIT_MENTIONS", parse_rate, Rate(300, "day")),
    Setting("LIMIT_IMAGES", parse_rate, Rate(300, "hour")),
    Setting("LIMIT_FILES", parse_rate, Rate(100, "hour")),
    Setting("LIMIT_REPORTS", parse_rate, Rate(30, "hour")),
    # 100,000 characters of content may be written as \uD83D\uDE00 each.
    Setting("MAX_JSON_BYTES", integer(1024, 2**30), 5 * 2**18),
    Setting("MAX_IMAGE_BYTES", integer(1024, 2**28), 5 * 2**20),
    Setting("MAX_FILE_BYTES", integer(1024, 2**28), 10 * 2**20),
    Setting("MAX_MEMBER_BYTES", integer(1024, 2**50), 2**30),
)
# Settings of the server, which the app does not know.
SERVER_SETTINGS = (
    Setting("BIND", parse_address, "127.0.0.1", prefix=""),
    Setting("PORT", integer(0, 65_535), DEFAULT_PORT, prefix=""),
    Setting("WEB_CONCURRENCY", integer(1, 1000), os.cpu_count() or 1, prefix=""),
    Setting("MAX_REQUESTS", integer(0, 999_999_999), 0, prefix=""),
)
# Variables that Kubernetes sets for each service in the namespace, such as one named posting.
KUBERNETES_VARIABLE = re.compile(
    r"POSTING_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)="
    r"|POSTING_(\w+_)?PORT=(tcp|udp|sctp)://"
)


def child_environment(added: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a program that this process runs, with more variables."""
    return {**os.environ, **added}


def load_env_files() -> None:
    """Set the variables of `.env`, as the `flask` command does. Raise StartError for a mistake."""
    check_env_files()
    if get_load_dotenv():
        load_dotenv()


def check_env_files() -> None:
    """Raise StartError for a line of `.env` that Flask would skip, misread or fail at."""
    if get_load_dotenv():
        for name in (".flaskenv", ".env"):
            if path := find_dotenv(name, usecwd=True):
                check_env_file(path)


def check_env_file(path: str) -> None:
    """Raise StartError for a line of a file with variables, as `check_env_files` does."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise StartError(
            f"{path} cannot be read ({error.strerror}). Let the service's user read the file."
        ) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise StartError(f"{path}, line {line} is not UTF-8. Save the file as UTF-8.") from None
    bindings = list(parse_stream(io.StringIO(text)))
    for index, (key, value, original, is_invalid) in enumerate(bindings):
        if key is None and not is_invalid:  # a comment, or blank lines at the end
            continue
        blank_lines = original.string[: -len(original.string.lstrip())].count("\n")
        place = f"{path}, line {original.line + blank_lines}"
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", key or "") or value is None or "\0" in value:
            raise StartError(
                f"{place} is not NAME=value, such as POSTING_SIGNUP=closed. "
                "Correct the line, or write # before it."
            )
        # If Flask has read the file already, the environment has the variables below as well.
        above = {binding.key for binding in bindings[:index]}
        below = {binding.key for binding in bindings[index + 1 :]}
        known = above | (os.environ.keys() - below)
        if any(
            isinstance(part, Variable) and part.default is None and part.name not in known
            for part in parse_variables(value)
        ):
            raise StartError(
                f"{place} has ${{…}} with the name of a variable that is not set. Set the variable "
                "in a line above. If you mean the characters ${ themselves, write ${:-$}{ instead."
            )


def load_server() -> dict[str, Any]:
    """Return the settings that the server needs before the app. Raise StartError as `load` does."""
    return {
        setting.name: _value(setting, {}) for setting in (*SERVER_SETTINGS, LOG_FORMAT, METRICS)
    }


def worker_threads() -> int:
    """Return the number of threads of this process, as gunicorn has it, or its usual number."""
    return int(os.environ.get("WORKER_THREADS", THREADS))


def server_url() -> str:
    """Return the URL at which the server listens, or "" if its port is unknown or there is none."""
    settings = load_server()
    host, port = settings["BIND"], settings["PORT"]
    command = click.get_current_context(silent=True)
    if command and command.info_name == "run":  # Flask's own server
        host, port = command.params.get("host", host), command.params.get("port", port)
    if host.startswith("unix:") or not port:
        return ""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - as BIND has it
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def require_port(settings: Mapping[str, Any]) -> None:
    """Raise StartError unless a server can listen at BIND and PORT, which says what to change."""
    host, port = settings["BIND"], settings["PORT"]
    if host.startswith("unix:"):
        return
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen()
        except OSError as error:
            advice = {
                errno.EADDRINUSE: "Stop the program that listens there, or set PORT to another.",
                errno.EACCES: "Set PORT to a number of 1024 or more.",
            }.get(error.errno or 0, "Set BIND to an address of this machine.")
            raise PortError(
                f"The server cannot listen at {host}, port {port} ({error.strerror}). {advice}"
            ) from None


def instance_path(overrides: Mapping[str, Any]) -> str | None:
    """Return the configured instance folder, which Flask needs before the other settings."""
    path: str | None = _value(INSTANCE_PATH, overrides)
    return path


def max_form_bytes(config: Mapping[str, Any]) -> int:
    """Return the maximum size of a form: the largest image or file, and its other parts."""
    return max(int(config["MAX_IMAGE_BYTES"]), int(config["MAX_FILE_BYTES"])) + OTHER_PARTS


def is_https(config: Mapping[str, Any]) -> bool:
    """Return whether the public URL is HTTPS."""
    return (config["PUBLIC_URL"] or "").startswith("https:")


def cookie_name(config: Mapping[str, Any]) -> str:
    """Return the name of the session cookie, which has the port and the path of the service.

    Browsers send a cookie to all ports and paths of a host, so two instances on one host would
    overwrite each other's. The name is short in the ordinary case: a public URL without a port and
    a path, a proxy, or the default port.
    """
    # The prefix makes browsers bind the cookie to the host; it requires HTTPS.
    name = "__Host-session" if is_https(config) else "session"
    if config["PUBLIC_URL"]:
        url = urlsplit(config["PUBLIC_URL"])
        port = f"-{url.port}" if url.port else ""
        return f"{name}{port}{url.path.replace('/', '+')}"
    if config["PROXY_HOPS"] or config["TESTING"]:
        return name
    try:
        own_port = urlsplit(server_url()).port
    except StartError:  # of variables that only another server uses
        return name
    return name if own_port in {None, DEFAULT_PORT} else f"{name}-{own_port}"


def everyone_may_read(config: Mapping[str, Any]) -> bool:
    """Return whether visitors may read as well as members."""
    return bool(config["READING"] == "everyone")


def sends_mails(config: Mapping[str, Any]) -> bool:
    """Return whether the service has a mail server."""
    return config["SMTP_URL"] is not None


def load(app: Flask, overrides: Mapping[str, Any]) -> None:
    """Read all settings into `app.config`.

    Raise StartError for an invalid value, for an override that is neither a setting nor a
    configuration key of Flask, and for a `POSTING_` variable that is not a setting. With Flask's
    own command, which has read `.env` already, raise it for a mistake in that file too.
    """
    if click.get_current_context(silent=True):
        check_env_files()
    names = {setting.name for setting in SETTINGS}
    for name in overrides:
        if name not in names and name not in app.default_config:
            raise _unknown(name)
    for variable, value in sorted(os.environ.items()):
        if (
            variable.upper().startswith(PREFIX)
            and variable.removeprefix(PREFIX) not in names
            and not KUBERNETES_VARIABLE.match(f"{variable}={value}")
        ):
            raise _unknown(variable[len(PREFIX) :], variable[: len(PREFIX)])
    app.config.update({name: value for name, value in overrides.items() if name not in names})
    for setting in SETTINGS:
        app.config[setting.name] = _value(setting, overrides)
    fixed = {setting.name for setting in SETTINGS if _given(setting, overrides)[1]}
    app.config[FIXED] = frozenset(fixed)
    _require_what_mails_need(app.config)
    if app.testing:
        for name, default in (("PASSWORD_HASH", CHEAP_PASSWORD_HASH), ("RATE_LIMITS", False)):
            if name not in overrides and not os.environ.get(PREFIX + name, "").strip():
                app.config[name] = default


def _require_what_mails_need(settings: Mapping[str, Any]) -> None:
    """Raise StartError if there is a mail server, and a setting is missing that mails need."""
    if not sends_mails(settings):
        return
    for name in ("MAIL_FROM", "PUBLIC_URL"):
        if not settings[name]:
            raise StartError(f"{PREFIX}SMTP_URL needs {PREFIX}{name} as well. Set both.")
    if not settings["PAGES"]:
        raise StartError(
            f"{PREFIX}SMTP_URL needs the pages, since mails have links to them. "
            f"Set {PREFIX}PAGES=on, or remove {PREFIX}SMTP_URL."
        )


def _unknown(name: str, prefix: str = "") -> StartError:
    if prefix and name in {setting.name for setting in SERVER_SETTINGS}:
        return StartError(f"{prefix}{name} is not a setting; its name is {name}.")
    names = [setting.name for setting in SETTINGS]
    nearest = difflib.get_close_matches(name.upper(), names, n=1)
    advice = "docs/settings.md lists them all."
    if nearest:
        advice = f"did you mean {prefix.upper()}{nearest[0]}?"
    return StartError(f"{prefix}{name} is not a setting; {advice}")


def _value(setting: Setting, overrides: Mapping[str, Any]) -> Any:
    source, text = _given(setting, overrides)
    if not text:
        return setting.default
    try:
        return setting.parse(text)
    except ValueError as error:
        # A URL of a database or of a mail server may contain a password.
        shown = "" if setting.name in {"DATABASE_URL", "SMTP_URL"} else f"; it is {text!r}"
        raise StartError(f"{source} {error}{shown}.") from None


def _given(setting: Setting, overrides: Mapping[str, Any]) -> tuple[str, str]:
    """Return where a setting is set, and its text, which is empty if it is not set."""
    if setting.name in overrides:
        source, value = setting.name, overrides[setting.name]
    else:
        source, value = setting.variable, os.environ.get(setting.variable)
    return source, "" if value is None else str(value).strip()
