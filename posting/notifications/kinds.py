"""The kinds of notifications, to which later features add their own."""

_known: list[str] = []


def new_kind(name: str) -> str:
    """Return the name of a kind, which the OpenAPI document then lists."""
    _known.append(name)
    return name


def known_kinds() -> list[str]:
    """Return the kinds of all features that are imported."""
    return _known


COMMENT = new_kind("comment")  # on a post of the recipient, or one that the recipient follows
REPLY = new_kind("reply")
MENTION = new_kind("mention")
APPLICATION = new_kind("application")  # for moderators
