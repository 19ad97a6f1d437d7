"""Events of comments."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class CommentCreated:
    """A comment was created. `mentions` has the names in it."""

    id: str
    post_id: str
    parent_id: str | None
    author_id: str
    mentions: Collection[str]


@dataclass(frozen=True)
class CommentEdited:
    """A comment was edited. `mentions` has the names that its former text does not have."""

    id: str
    post_id: str
    author_id: str
    mentions: Collection[str]


@dataclass(frozen=True)
class Comments:
    """Several comments: the ID of the post of each, by the ID of the comment."""

    post_ids: Mapping[str, str]

    @property
    def ids(self) -> list[str]:
        return [*self.post_ids]


class CommentsEmptied(Comments):
    """Comments were deleted, but their rows are kept for their replies."""


class CommentsDeleted(Comments):
    """Comments were deleted with their rows. Those on a deleted post are not announced."""


class CommentsAnonymized(Comments):
    """Comments have lost their author, whose account is being deleted."""
