"""The SQL that images and files have in common: they are sent first, and then attached to a text.

A post or comment of their owner takes them, in the transaction that writes it. Until then, only the
owner can read them, and what no text takes expires after a day.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from flask import current_app
from werkzeug.exceptions import RequestEntityTooLarge

from posting.comments.models import Comment
from posting.db.base import Identifier
from posting.db.purge import trusted_now
from posting.db.transactions import Row, execute, fetch_all, fetch_one, fetch_value
from posting.files.models import File
from posting.images.models import Image
from posting.posts.models import DELETED_POSTS, Post
from posting.web.errors import Coded, InvalidInput, Message

Kind = type[Image] | type[File]

MAX_UNATTACHED = 40  # images of a member, and as many files
NOT_FREE: dict[Kind, Message] = {
    Image: Message(
        "no_such_image",
        "Must be an image of yours that is not attached to another post or comment.",
    ),
    File: Message(
        "no_such_file", "Must be a file of yours that is not attached to another post or comment."
    ),
}
TOO_MANY_UNATTACHED = Message(
    "too_many_unattached",
    f"You have {MAX_UNATTACHED} {{}} that no post or comment has. Delete one, or wait for a day.",
)


class QuotaExceeded(Coded, RequestEntityTooLarge):
    error_code = "quota_exceeded"
    description = (
        "Your images and files would be larger in all than those of a member may be; delete some."
    )


class Attached(NamedTuple):
    """The ids that a text has got, and those that are deleted because it no longer has them."""

    created: list[str]
    deleted: list[str]


def is_shown(kind: Kind) -> sa.ColumnElement[bool]:
    """Return the condition that an attachment is on a post that exists, or on a comment on it."""
    return sa.and_(kind.post_id.is_not(None), kind.post_id.not_in(DELETED_POSTS))


def is_free(kind: Kind) -> sa.ColumnElement[bool]:
    """Return the condition that an attachment of the user `owner` is not attached."""
    return sa.and_(kind.post_id.is_(None), kind.owner_id == sa.bindparam("owner", type_=Identifier))


def attach(
    kind: Kind, ids: Sequence[str], owner_id: str, *, post_id: str, comment_id: str | None = None
) -> Attached | None:
    """Give attachments to a locked post, or to a comment on it, in this order.

    They are those that it has, and some of the owner that are not attached. The others that it has
    are deleted. Return None if this changes nothing. Raise 422 at the first id of anything else.
    """
    is_of = sa.and_(kind.post_id == post_id, kind.comment_id == comment_id)
    order = (kind.position, kind.created_at, kind.id)
    former = [row.id for row in fetch_all(sa.select(kind.id).where(is_of).order_by(*order))]
    if former == [*ids]:
        return None
    free = sa.select(kind.id).where(kind.id.in_(ids), is_free(kind)).order_by(kind.id)
    free_ids = set(execute(free.with_for_update(), owner=owner_id).scalars())  # in one order
    created = [id for id in ids if id not in former]
    for place, id in enumerate(ids):
        values: dict[str, Any] = {"position": place}
        if id in free_ids:
            of = {"post_id": post_id, "comment_id": comment_id}
            values |= of | {"unattached_since": None}
        elif id in created:
            raise InvalidInput.at(f"/{kind.__tablename__}/{place}", NOT_FREE[kind])
        execute(sa.update(kind).where(kind.id == id).values(values))
    deleted = [id for id in former if id not in ids]
    if deleted:
        execute(sa.delete(kind).where(kind.id.in_(deleted)))
    count(kind, post_id, comment_id)
    return Attached(created, deleted)


def count_of_post(kind: Kind) -> sa.ScalarSelect[int]:
    """Return the number of attachments of a post, without those of its comments."""
    of_post = sa.select(sa.func.count()).where(kind.post_id == Post.id, kind.comment_id.is_(None))
    return of_post.scalar_subquery()


def count_of_comment(kind: Kind) -> sa.ScalarSelect[int]:
    """Return the number of attachments of a comment."""
    return sa.select(sa.func.count()).where(kind.comment_id == Comment.id).scalar_subquery()


def count(kind: Kind, post_id: str, comment_id: str | None = None) -> None:
    """Store in a locked post, or in a comment on it, how many attachments it has."""
    if comment_id:
        counts = {kind.COUNT: count_of_comment(kind)}
        execute(sa.update(Comment).where(Comment.id == comment_id).values(counts))
    else:
        execute(sa.update(Post).where(Post.id == post_id).values({kind.COUNT: count_of_post(kind)}))


def get_for_update(
    kind: Kind, columns: Sequence[sa.ColumnElement[Any]], id: str, user_id: str
) -> Row | None:
    """Lock an attachment for a user, and return columns of it, `author_id` among them.

    This locks the post of the attachment, or the attachment itself if no text has it. Then only its
    owner may know of it. Return None if there is none.
    """
    free = lock_unattached(kind, columns, id, user_id)
    if free:
        return free
    is_it = sa.and_(kind.id == id, is_shown(kind))
    post = sa.select(Post.id).join(kind, kind.post_id == Post.id).where(is_it)
    execute(post.with_for_update(of=Post))
    author_id = sa.case((kind.comment_id.is_(None), Post.author_id), else_=Comment.author_id)
    statement = sa.select(*columns, author_id.label("author_id")).join_from(
        kind, Post, Post.id == kind.post_id
    )
    return fetch_one(statement.outerjoin(Comment, Comment.id == kind.comment_id).where(is_it))


def lock_unattached(
    kind: Kind, columns: Sequence[sa.ColumnElement[Any]], id: str, user_id: str
) -> Row | None:
    """Lock an attachment of a user that no text has, and return columns of it with `author_id`."""
    statement = sa.select(*columns, kind.owner_id.label("author_id"))
    statement = statement.where(kind.id == id, is_free(kind)).with_for_update()
    return execute(statement, owner=user_id).one_or_none()


def delete_of_comments(kind: Kind, ids: Collection[str]) -> Sequence[Row]:
    """Delete the attachments of comments on locked posts. Return their ids and those of texts."""
    counted = sa.update(Comment).where(Comment.id.in_(ids), getattr(Comment, kind.COUNT) > 0)
    if not execute(counted.values({kind.COUNT: 0})).rowcount:
        return []
    gone = sa.delete(kind).where(kind.comment_id.in_(ids))
    return execute(gone.returning(kind.id, kind.post_id, kind.comment_id)).all()


def forget_owners_of_posts(ids: Collection[str]) -> None:
    """Remove the owner of what locked posts have, without what their comments have.

    The holder of their locks does this, before the deletion of the account does it.
    """
    for kind in (Image, File):
        execute(
            sa.update(kind).where(kind.post_id.in_(ids), kind.comment_id.is_(None)), owner_id=None
        )


def forget_owners_of_comments(ids: Collection[str]) -> None:
    """Remove the owner of what comments on locked posts have."""
    for kind in (Image, File):
        execute(sa.update(kind).where(kind.comment_id.in_(ids)), owner_id=None)


def purge_unattached(owner_id: str) -> None:
    """Delete what a user has sent that no text has and that has expired.

    Otherwise it would count toward the limits of this user until somebody sends something.
    """
    time = trusted_now()
    for kind in (Image, File):
        _, lifetime = kind.EXPIRES
        expired = kind.unattached_since < time - lifetime
        execute(sa.delete(kind).where(kind.owner_id == owner_id, expired))


def delete_unattached(owner_id: str) -> None:
    """Delete what the user of a locked account has sent that no text has."""
    for kind in (Image, File):
        execute(sa.delete(kind).where(is_free(kind)), owner=owner_id)


def require_space(kind: Kind, owner_id: str, size: int = 0) -> None:
    """Raise 413 or 422 unless a user can send another attachment with this size in bytes."""
    unattached = fetch_value(sa.select(sa.func.count()).where(is_free(kind)), owner=owner_id)
    if unattached >= MAX_UNATTACHED:
        raise InvalidInput.at("/file", TOO_MANY_UNATTACHED.format(kind.__tablename__))
    require_quota(owner_id, size)


def require_quota(owner_id: str, size: int = 0) -> None:
    """Raise 413 unless a user may have attachments with this size in bytes besides the others."""
    totals = [
        sa.select(sa.func.coalesce(sa.func.sum(kind.size), 0))
        .where(kind.owner_id == owner_id)
        .scalar_subquery()
        for kind in (Image, File)
    ]
    total = fetch_value(sa.select(sum(totals, start=sa.literal(size))))
    if total > current_app.config["MAX_MEMBER_BYTES"]:
        raise QuotaExceeded


def largest_total() -> int:
    """Return the size in bytes of the attachments of the user for whom it is the largest."""
    owned = sa.union_all(
        *(
            sa.select(kind.owner_id, sa.func.sum(kind.size).label("size"))
            .where(kind.owner_id.is_not(None))
            .group_by(kind.owner_id)
            for kind in (Image, File)
        )
    ).subquery()
    size = sa.func.sum(owned.c.size)
    row = fetch_one(sa.select(size).group_by(owned.c.owner_id).order_by(size.desc()).limit(1))
    return int(row[0]) if row else 0
