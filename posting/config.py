"""Every setting: its name, how it is read, its default and one line of help.

Nothing else reads the environment. A setting `NAME` is the variable `POSTING_NAME`, or the key
`NAME` of the mapping given to `create_app`, which wins.
"""

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
from flask import Flask

VERSION = "0.1.0"
PREFIX = "POSTING_"
UNITS = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}
ORIGIN = r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?"
CHEAP_PASSWORD_HASH = "scrypt:128:8:1"  # noqa: S105 - parameters, for tests


class StartError(click.ClickException):
    """The service cannot start; the message says what happened and what to do next."""

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Rate:
    """So many in a second, minute, hour or day."""

    amount: int
    unit: str

    @property
    def window(self) -> timedelta:
        return UNITS[self.unit]

    def __str__(self) -> str:
        return f"{self.amount}/{self.unit}"


@dataclass(frozen=True)
class Setting:
    """One setting; `read` turns its text into a value or raises ValueError with the rule."""

    name: str
    read: Callable[[str], Any]
    default: Any
    help: str


def text(value: str) -> str:
    return value


def absolute_path(value: str) -> str | None:
    if value and not Path(value).is_absolute():
        raise ValueError("must be an absolute path")
    return value or None


def words(value: str) -> list[str]:
    return value.split()


def whole_number(least: int, most: int) -> Callable[[str], int]:
    def read(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", value) or not least <= int(value) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(value)

    return read


def one_of(*choices: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in choices:
            raise ValueError(f"must be one of: {', '.join(choices)}")
        return value

    return read


def rate(value: str) -> Rate | None:
    if not value:
        return None
    match = re.fullmatch(rf"([1-9]\d{{0,6}})/({'|'.join(UNITS)})", value)
    if match is None:
        raise ValueError("must look like 60/hour (or a second, minute or day), or be empty")
    return Rate(int(match[1]), match[2])


def database_url(value: str) -> str:
    scheme, _, rest = value.partition("://")
    if value.startswith("sqlite://"):
        if rest and rest[0] not in "/?":
            raise ValueError(
                "is missing a slash: use sqlite:///posting.db in the instance folder, "
                "or sqlite:////var/lib/posting/posting.db with an absolute path"
            )
        return value
    if rest and scheme in {"postgres", "postgresql", "postgresql+psycopg"}:
        try:
            port = urlsplit(value).port
        except ValueError:
            port = 0
        if port == 0:
            raise ValueError(
                "has a port that is not a number from 1 to 65535; "
                "in a password write / as %2F, : as %3A and @ as %40"
            )
        return f"postgresql+psycopg://{rest}"
    raise ValueError("must start with sqlite:/// or postgresql://")


def public_url(value: str) -> str | None:
    if not value:
        return None
    match = re.fullmatch(rf"({ORIGIN})((?:/[\w.~-]+)*)/*", value, re.ASCII | re.IGNORECASE)
    if match is None:
        raise ValueError("must look like https://example.org or https://example.org/community")
    origin, path = match[1].lower(), match[2]
    default_port = ":443" if origin.startswith("https:") else ":80"
    return origin.removesuffix(default_port) + path


def origins(value: str) -> frozenset[str]:
    found = frozenset(value.split())
    if not all(re.fullmatch(ORIGIN, origin) for origin in found):
        raise ValueError("must hold origins such as https://example.org, separated by spaces")
    return found


def scrypt_parameters(value: str) -> str:
    if not re.fullmatch(r"scrypt:\d{1,8}:\d{1,3}:\d{1,3}", value):
        raise ValueError("must look like scrypt:32768:8:3 (N, r and p)")
    n, r, p = (int(part) for part in value.split(":")[1:])
    if n < 128 or n & (n - 1) or not r or not p or 132 * n * r * p >= 2**31:
        raise ValueError("needs an N of 128 or more, a power of two, and N * r * p under 2**24")
    return value


INSTANCE_PATH = Setting(
    "INSTANCE_PATH",
    absolute_path,
    None,
    "The folder of the database and the secret key, where nothing else is said. "
    "Default: `instance/` beside the code of a checkout, else in the working directory",
)
SETTINGS = (
    INSTANCE_PATH,
    Setting(
        "DATABASE_URL",
        database_url,
        "sqlite:///posting.db",
        "Where the data lives; a relative SQLite path is relative to the instance folder. "
        "`sqlite://` alone is an in-memory database for single-threaded tests",
    ),
    Setting(
        "SECRET_KEY",
        text,
        "",
        "Signs page cursors, at least 16 characters; every machine of one service needs the same. "
        "Default: made once in the instance folder, mode 0600",
    ),
    Setting("SECRET_KEY_FILE", text, "", "A file that holds the secret key, instead of the above"),
    Setting(
        "SECRET_KEY_FALLBACKS",
        words,
        [],
        "Former secret keys, separated by spaces: cursors signed with them stay good",
    ),
    Setting(
        "PUBLIC_URL",
        public_url,
        None,
        "The URL that browsers see. Makes absolute URLs, decides on secure cookies, "
        "and other hosts but loopback names are refused",
    ),
    Setting(
        "PROXY_HOPS",
        whole_number(0, 10),
        0,
        "How many proxies of yours stand in front and set `X-Forwarded-*`",
    ),
    Setting(
        "TRUSTED_ORIGINS",
        origins,
        frozenset(),
        "Other origins from which writes pass, like `https://app.example.org`, separated by spaces",
    ),
    Setting("LOG_FORMAT", one_of("text", "json"), "text", "`text` lines, or `json` ones"),
    Setting("LOG_REQUESTS", one_of("on", "off"), "on", "`on` logs a line for each request"),
    Setting(
        "RESPONSE_CACHE",
        one_of("on", "off"),
        "on",
        "`on` keeps answers to public GETs until something is committed; on SQLite",
    ),
    Setting("METRICS", one_of("on", "off"), "off", "`on` answers Prometheus at `/metrics`"),
    Setting("PASSWORD_MIN", whole_number(8, 256), 8, "Least length of a password; 15 is better"),
    Setting(
        "PASSWORD_HASH",
        scrypt_parameters,
        "scrypt:32768:8:3",
        "Cost of a password hash as scrypt N, r, p. Cheap when `TESTING`",
    ),
    Setting("SIGNUP", one_of("open", "closed"), "open", "`closed` lets nobody open an account"),
    Setting(
        "RATE_LIMITS", one_of("on", "off"), "on", "`off` lifts all limits below; so does `TESTING`"
    ),
    Setting(
        "LIMIT_SIGNIN",
        rate,
        Rate(20, "hour"),
        "Failures to sign in to one account from one address, five times that from one address; "
        "like the following a number a second, minute, hour or day, or empty for no limit",
    ),
    Setting("LIMIT_SIGNUP", rate, Rate(60, "hour"), "New accounts from one address"),
    Setting("LIMIT_POSTS", rate, Rate(300, "hour"), "New posts of one user"),
    Setting("LIMIT_COMMENTS", rate, Rate(600, "hour"), "New comments of one user"),
    Setting("LIMIT_IMAGES", rate, Rate(300, "hour"), "New images of one user"),
    # 100,000 characters of content may be written as \uD83D\uDE00 each.
    Setting("MAX_JSON_BYTES", whole_number(1024, 2**30), 5 * 2**18, "Largest JSON body, in bytes"),
    Setting(
        "MAX_IMAGE_BYTES",
        whole_number(1024, 2**28),
        5 * 2**20,
        "Largest image, in bytes; the form that brings it may have 1 MiB more",
    ),
)
# Environment variables that Kubernetes makes for each service, such as one named posting.
OF_KUBERNETES = re.compile(
    r"POSTING_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


def instance_path(given: Mapping[str, Any]) -> str | None:
    """Return the configured instance folder, which Flask must know before all else."""
    path: str | None = _value(INSTANCE_PATH, given)
    return path


def max_form_bytes(config: Mapping[str, Any]) -> int:
    """Return the size of the largest form: one with the largest image and 1 MiB for other parts."""
    return int(config["MAX_IMAGE_BYTES"]) + 2**20


def load(app: Flask, given: Mapping[str, Any]) -> None:
    """Read all settings into `app.config`.

    Errors: StartError for a value that does not parse, for a given name that is no setting
    and no configuration key of Flask, and for a POSTING_ variable that is no setting.
    """
    names = {setting.name for setting in SETTINGS}
    for name in given:
        if name not in names and name not in app.default_config:
            raise _unknown(name)
    for variable in sorted(os.environ):
        name = variable.removeprefix(PREFIX)
        if variable != name and name not in names and not OF_KUBERNETES.fullmatch(variable):
            raise _unknown(name, PREFIX)
    app.config.update({name: value for name, value in given.items() if name not in names})
    for setting in SETTINGS:
        app.config[setting.name] = _value(setting, given)
    if app.testing and not _is_set("PASSWORD_HASH", given):
        app.config["PASSWORD_HASH"] = CHEAP_PASSWORD_HASH
    if app.testing and not _is_set("RATE_LIMITS", given):
        app.config["RATE_LIMITS"] = "off"


def _unknown(name: str, prefix: str = "") -> StartError:
    nearest = difflib.get_close_matches(name, [setting.name for setting in SETTINGS], n=1)
    advice = f"did you mean {prefix}{nearest[0]}?" if nearest else "the README lists them all."
    return StartError(f"{prefix}{name} is not a setting; {advice}")


def _is_set(name: str, given: Mapping[str, Any]) -> bool:
    return name in given or PREFIX + name in os.environ


def _value(setting: Setting, given: Mapping[str, Any]) -> Any:
    if setting.name in given:
        source, value = setting.name, given[setting.name]
    else:
        source, value = PREFIX + setting.name, os.environ.get(PREFIX + setting.name)
    if value is None:
        return setting.default
    try:
        return setting.read(str(value).strip())
    except ValueError as error:
        # The URL of a database may hold a password.
        shown = "" if setting.name == "DATABASE_URL" else f"; it is {str(value)!r}"
        raise StartError(f"{source} {error}{shown}.") from None
