"""The kinds of notifications, to which later features add their own."""

_known: list[str] = []
_for_moderators: list[str] = []


def new_kind(name: str, *, for_moderators: bool = False) -> str:
    """Return the name of a kind, which the OpenAPI document then lists.

    A moderator who is demoted loses those `for_moderators`.
    """
    _known.append(name)
    if for_moderators:
        _for_moderators.append(name)
    return name


def kinds_for_moderators() -> list[str]:
    """Return the kinds that only moderators may read."""
    return _for_moderators


def known_kinds() -> list[str]:
    """Return the kinds of all features that are imported."""
    return _known


COMMENT = new_kind("comment")  # on a post of the recipient, or one that the recipient follows
REPLY = new_kind("reply")
MENTION = new_kind("mention")
APPLICATION = new_kind("application", for_moderators=True)
