"""The audit log: security events with the user and the client's IP, never with input or secrets."""

import logging
import re

from flask import g, has_request_context, request

from posting.db.transactions import after_commit
from posting.web.middleware.proxy import client_ip

_logger = logging.getLogger("posting.audit")


def log(event: str, **fields: str | None) -> None:
    """Log an event. Within a unit of work, log it after the commit, since an error undoes it.

    In a request, add the user, the client's IP and the endpoint.
    """
    if has_request_context():
        user: str | None = g.get("user_id")
        fields = {"user": user, "address": client_ip(), "endpoint": request.endpoint} | fields
    logged = {"event": event} | {name: value for name, value in fields.items() if value}
    line = " ".join(f"{name}={_quote(value)}" for name, value in logged.items())
    after_commit(lambda: _logger.info("%s", line, extra={"fields": logged}))


def _quote(value: str) -> str:
    """Quote a value that contains spaces. Quotes in it become apostrophes."""
    if re.fullmatch(r'[^\s"=]+', value):
        return value
    without_quotes = value.replace('"', "'")
    return f'"{without_quotes}"'
