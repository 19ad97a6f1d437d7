"""Log lines as text or JSON, each with the id of the request that it belongs to."""

import json
import logging
import sys
from datetime import UTC, datetime
from functools import lru_cache
from textwrap import indent

from flask import Flask, g, has_request_context
from flask.logging import default_handler


class TextFormatter(logging.Formatter):
    """A line that a person reads; line breaks in messages cannot forge another."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_moment(record)} {record.levelname} [{_request_id(record)}] {_one_line(record)}"
        if not record.exc_info:
            return line
        return f"{line}\n{indent(self.formatException(record.exc_info), '    ')}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": _moment(record),
            "level": record.levelname,
            "logger": record.name,
            "request_id": _request_id(record),
            "message": record.getMessage(),
        }
        entry |= getattr(record, "facts", {})
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


class Stderr:
    """Where lines go: what is stderr at the time, which costs less to find than WSGI's stream."""

    @staticmethod
    def write(text: str) -> None:
        sys.stderr.write(text)

    @staticmethod
    def flush() -> None:
        sys.stderr.flush()


def is_no_access_line(record: logging.LogRecord) -> bool:
    """Drop the line that werkzeug's server logs for each request: POSTING_LOG_REQUESTS has one."""
    return not str(record.msg).endswith('] "%s" %s %s')


def init_app(app: Flask) -> None:
    logging.getLogger("werkzeug").addFilter(is_no_access_line)
    json_wanted = app.config["LOG_FORMAT"] == "json"
    default_handler.setStream(Stderr())
    default_handler.setFormatter(JsonFormatter() if json_wanted else TextFormatter())
    app.logger.setLevel(logging.DEBUG if app.debug else logging.INFO)


def _moment(record: logging.LogRecord) -> str:
    return f"{_second(int(record.created))}.{int(record.msecs):03d}Z"


@lru_cache(8)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def _request_id(record: logging.LogRecord) -> str:
    """Return the id of the request that a line is about: one that it names, or the current one."""
    if named := getattr(record, "request_id", None):
        return str(named)
    return str(g.get("request_id", "-")) if has_request_context() else "-"


def _one_line(record: logging.LogRecord) -> str:
    return record.getMessage().encode("unicode_escape").decode()
