"""Settings: their names, parsers and defaults.

Nothing else reads the environment. A setting `NAME` comes from the mapping passed to `create_app`,
else from the variable `POSTING_NAME`, else from its default. The README describes each setting.
"""

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
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
    """The service cannot start; the message says why and what to do."""

    def __str__(self) -> str:
        return self.message


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


def parse_path(value: str) -> str | None:
    if value and not Path(value).is_absolute():
        raise ValueError("must be an absolute path")
    return value or None


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
        return value

    return parse


def choice(*choices: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(f"must be one of: {', '.join(choices)}")
        return value

    return parse


def parse_rate(value: str) -> Rate | None:
    if not value:
        return None
    match = re.fullmatch(rf"([1-9]\d{{0,6}})/({'|'.join(UNITS)})", value)
    if match is None:
        raise ValueError("must look like 60/hour (or a second, minute or day), or be empty")
    return Rate(int(match[1]), match[2])


def parse_database_url(value: str) -> str:
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


def parse_public_url(value: str) -> str | None:
    if not value:
        return None
    match = re.fullmatch(rf"({ORIGIN})((?:/[\w.~-]+)*)/*", value, re.ASCII | re.IGNORECASE)
    if match is None:
        raise ValueError("must look like https://example.org or https://example.org/community")
    origin, path = match[1].lower(), match[2]
    default_port = ":443" if origin.startswith("https:") else ":80"
    return origin.removesuffix(default_port) + path


def parse_origins(value: str) -> frozenset[str]:
    origins = frozenset(value.split())
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


INSTANCE_PATH = Setting("INSTANCE_PATH", parse_path, None)
SETTINGS = (
    INSTANCE_PATH,
    Setting("DATABASE_URL", parse_database_url, "sqlite:///posting.db"),
    Setting("PUBLIC_URL", parse_public_url, None),
    Setting("PROXY_HOPS", integer(0, 10), 0),
    Setting("NAME", one_line(60), "Posting"),
    Setting("DESCRIPTION", one_line(200), ""),
    Setting("PAGES", choice("on", "off"), "on"),
    Setting("TRUSTED_ORIGINS", parse_origins, frozenset()),
    Setting("LOG_FORMAT", choice("text", "json"), "text"),
    Setting("LOG_REQUESTS", choice("on", "off"), "on"),
    Setting("RESPONSE_CACHE", choice("on", "off"), "on"),
    Setting("METRICS", choice("on", "off"), "off"),
    Setting("PASSWORD_MIN", integer(8, 256), 8),
    Setting("PASSWORD_HASH", parse_scrypt_parameters, "scrypt:32768:8:3"),
    Setting("SIGNUP", choice("open", "closed"), "open"),
    Setting("RATE_LIMITS", choice("on", "off"), "on"),
    Setting("LIMIT_SIGNIN", parse_rate, Rate(20, "hour")),
    Setting("LIMIT_SIGNUP", parse_rate, Rate(60, "hour")),
    Setting("LIMIT_POSTS", parse_rate, Rate(300, "hour")),
    Setting("LIMIT_COMMENTS", parse_rate, Rate(600, "hour")),
    Setting("LIMIT_IMAGES", parse_rate, Rate(300, "hour")),
    # 100,000 characters of content may be written as \uD83D\uDE00 each.
    Setting("MAX_JSON_BYTES", integer(1024, 2**30), 5 * 2**18),
    Setting("MAX_IMAGE_BYTES", integer(1024, 2**28), 5 * 2**20),
)
# Settings of earlier versions, and what to do about each.
REMOVED = {
    "SECRET_KEY": "is no longer needed; remove it.",
    "SECRET_KEY_FILE": "is no longer needed; remove it.",
    "SECRET_KEY_FALLBACKS": "is no longer needed; remove it.",
    "MAX_UPLOAD_BYTES": "is no longer a setting; POSTING_MAX_IMAGE_BYTES sets the size of uploads.",
}
# Variables that Kubernetes sets for each service in the namespace, such as one named posting.
KUBERNETES_VARIABLE = re.compile(
    r"POSTING_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


def instance_path(overrides: Mapping[str, Any]) -> str | None:
    """Return the configured instance folder, which Flask needs before the other settings."""
    path: str | None = _value(INSTANCE_PATH, overrides)
    return path


def max_form_bytes(config: Mapping[str, Any]) -> int:
    """Return the maximum size of a form: the largest image, and 1 MiB for the other parts."""
    return int(config["MAX_IMAGE_BYTES"]) + 2**20


def is_https(config: Mapping[str, Any]) -> bool:
    """Return whether the public URL is HTTPS."""
    return (config["PUBLIC_URL"] or "").startswith("https:")


def load(app: Flask, overrides: Mapping[str, Any]) -> None:
    """Read all settings into `app.config`.

    Raise StartError for an invalid value, for an override that is neither a setting nor a
    configuration key of Flask, and for a `POSTING_` variable that is not a setting.
    """
    names = {setting.name for setting in SETTINGS}
    for name in overrides:
        if name in REMOVED or (name not in names and name not in app.default_config):
            raise _unknown(name)
    for variable in sorted(os.environ):
        name = variable.removeprefix(PREFIX)
        if variable != name and name not in names and not KUBERNETES_VARIABLE.fullmatch(variable):
            raise _unknown(name, PREFIX)
    app.config.update({name: value for name, value in overrides.items() if name not in names})
    for setting in SETTINGS:
        app.config[setting.name] = _value(setting, overrides)
    if app.testing:
        for name, value in (("PASSWORD_HASH", CHEAP_PASSWORD_HASH), ("RATE_LIMITS", "off")):
            if name not in overrides and PREFIX + name not in os.environ:
                app.config[name] = value


def _unknown(name: str, prefix: str = "") -> StartError:
    if name in REMOVED:
        return StartError(f"{prefix}{name} {REMOVED[name]}")
    nearest = difflib.get_close_matches(name, [setting.name for setting in SETTINGS], n=1)
    advice = f"did you mean {prefix}{nearest[0]}?" if nearest else "the README lists them all."
    return StartError(f"{prefix}{name} is not a setting; {advice}")


def _value(setting: Setting, overrides: Mapping[str, Any]) -> Any:
    if setting.name in overrides:
        source, value = setting.name, overrides[setting.name]
    else:
        source, value = PREFIX + setting.name, os.environ.get(PREFIX + setting.name)
    if value is None:
        return setting.default
    try:
        return setting.parse(str(value).strip())
    except ValueError as error:
        # The URL of a database may contain a password.
        shown = "" if setting.name == "DATABASE_URL" else f"; it is {str(value)!r}"
        raise StartError(f"{source} {error}{shown}.") from None
