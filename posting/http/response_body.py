"""JSON of responses."""

from typing import Any

import orjson

# orjson would encode dataclasses, such as the current user, with all of their fields.
OPTIONS = (
    orjson.OPT_APPEND_NEWLINE | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
)


def to_json(body: Any) -> bytes:
    """Return the body of a response. Error: TypeError for values that JSON does not have."""
    return orjson.dumps(body, option=OPTIONS)
