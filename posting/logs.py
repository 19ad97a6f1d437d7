"""Log formats: text or JSON lines, each with its request id."""

import json
import logging
import sys
from datetime import UTC, datetime
from functools import lru_cache
from textwrap import indent

from flask import Flask, g, has_request_context
from flask.logging import default_handler


class TextFormatter(logging.Formatter):
    """One line of text. Line breaks in a message are escaped, so that it cannot forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage().encode("unicode_escape").decode()
        line = f"{_timestamp(record)} {record.levelname} [{_request_id(record)}] {message}"
        if not record.exc_info:
            return line
        return f"{line}\n{indent(self.formatException(record.exc_info), '    ')}"


class JsonFormatter(logging.Formatter):
    """One JSON object per line, with the members of `record.fields` if it has any."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": _timestamp(record),
            "level": record.levelname,
            "logger": record.name,
            "request_id": _request_id(record),
            "message": record.getMessage(),
        } | getattr(record, "fields", {})
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


class Stderr:
    """The current `sys.stderr`, which takes less time to look up than WSGI's error stream."""

    @staticmethod
    def write(text: str) -> None:
        sys.stderr.write(text)

    @staticmethod
    def flush() -> None:
        sys.stderr.flush()


def init_app(app: Flask) -> None:
    logging.getLogger("werkzeug").addFilter(is_not_access_log)
    default_handler.setStream(Stderr())
    is_json = app.config["LOG_FORMAT"] == "json"
    default_handler.setFormatter(JsonFormatter() if is_json else TextFormatter())
    app.logger.setLevel(logging.DEBUG if app.debug else logging.INFO)


def is_not_access_log(record: logging.LogRecord) -> bool:
    """Filter out the access log of werkzeug's server; POSTING_LOG_REQUESTS replaces it."""
    return not str(record.msg).endswith('] "%s" %s %s')


def _timestamp(record: logging.LogRecord) -> str:
    return f"{_format_seconds(int(record.created))}.{int(record.msecs):03d}Z"


@lru_cache(8)
def _format_seconds(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def _request_id(record: logging.LogRecord) -> str:
    """Return the request id that the record carries, else that of the current request."""
    if request_id := getattr(record, "request_id", None):
        return str(request_id)
    return str(g.get("request_id", "-")) if has_request_context() else "-"
