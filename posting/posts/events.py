"""Events of posts."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class PostWritten:
    """A post was created or edited. `mentions` has the names that its former text does not have."""

    id: str
    author_id: str
    mentions: Collection[str]


class PostCreated(PostWritten):
    """A post was created."""


class PostEdited(PostWritten):
    """A post was edited."""


@dataclass(frozen=True)
class PostMarked:
    """A moderator has locked, unlocked, pinned or unpinned a post. This is no edit."""

    id: str


@dataclass(frozen=True)
class PostsAnonymized:
    """Posts have lost their author, whose account is being deleted."""

    ids: Collection[str]


@dataclass(frozen=True)
class PostsDeleted:
    """Posts will be deleted, with what belongs to them. Their rows still exist."""

    ids: Collection[str]
