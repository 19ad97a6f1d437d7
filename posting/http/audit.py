"""Log lines about what concerns security: what, who, from where; never what was typed or sent."""

import logging

from flask import g, has_request_context, request

from posting.http.proxy import client_ip

_logger = logging.getLogger("posting.audit")


def note(event: str, **facts: str | None) -> None:
    """Log that something happened, with who asks and from where if nothing else is said."""
    if has_request_context():
        who = {"user": g.get("user_id"), "address": client_ip()}
        facts = who | {"endpoint": request.endpoint} | facts
    told = {"event": event} | {name: value for name, value in facts.items() if value}
    line = " ".join(f"{name}={value}" for name, value in told.items())
    _logger.info("%s", line, extra={"facts": told})
