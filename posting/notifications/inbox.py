"""The inbox of a member: the notifications about comments on one post are together."""

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from posting.accounts.models import User
from posting.accounts.schemas import Author
from posting.comments.models import Comment
from posting.db.transactions import fetch_all
from posting.db.types import Position
from posting.notifications.models import CONVERSATION, Notification
from posting.notifications.schemas import MAX_ACTORS
from posting.notifications.store import IS_OWN, IS_SHOWN, NOTIFICATIONS, may_see, shorten_excerpts
from posting.web.pagination import Page, paginate
from posting.web.schemas import Item, columns, to_items

# A member keeps a thousand notifications. All are read, and grouped here.
_ALL = (
    sa.select(
        Notification.created_at,
        Notification.id,
        Notification.kind,
        Notification.read.label("read"),
        Notification.actor_id,
        sa.func.coalesce(Notification.post_id, Comment.post_id).label("post_id"),
    )
    .outerjoin(Comment, Comment.id == Notification.comment_id)
    .where(IS_OWN, IS_SHOWN)
    .order_by(Notification.created_at.desc(), Notification.id.desc())
)
_ids: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True)
_SOME = NOTIFICATIONS.where(Notification.id.in_(_ids))
_ACTORS = sa.select(*columns(Author, User)).where(User.id.in_(_ids), may_see(User))

Group = list[sa.Row[Any]]  # newest first


def list_by_post(user_id: str, *, limit: int, cursor: str | None, is_moderator: bool) -> Page:
    """Return a page of the notifications of a user, grouped by post, newest first."""
    reader = {"recipient": user_id, "is_moderator": is_moderator}
    groups = {rows[0].id: rows for rows in _group(fetch_all(_ALL, recipient=user_id))}
    places = [(rows[0].created_at, id) for id, rows in groups.items()]

    def find(after: Position | None, most: int) -> list[Position]:
        return [place for place in places if after is None or place < after][:most]

    page = paginate(
        NOTIFICATIONS,
        limit=limit,
        cursor=cursor,
        name="notifications_by_post",
        newest_first=True,
        parameters=reader,
        find=find,
    )
    shorten_excerpts(page.items)
    shown = [groups[latest["id"]] for latest in page.items]
    firsts = _fetch(_SOME, {_first(rows).id for rows in shown}, **reader)
    shorten_excerpts(firsts.values())
    ids = {id for rows in shown for id in _actors(rows)[:MAX_ACTORS]}
    actors = _fetch(_ACTORS, ids, is_moderator=is_moderator)
    items = [
        {
            "post": latest["post"],
            "unread": sum(not row.read for row in rows),
            "actors": [actors[id] for id in _actors(rows)[:MAX_ACTORS] if id in actors],
            "actor_count": len(_actors(rows)),
            "first": firsts.get(_first(rows).id, latest),
            "latest": latest,
        }
        for latest, rows in zip(page.items, shown, strict=True)
    ]
    return Page(items, page.next_cursor)


def _group(rows: Iterable[sa.Row[Any]]) -> Iterable[Group]:
    """Group notifications, in the order of the latest of each group."""
    groups: dict[str, Group] = {}
    for row in rows:
        post_id = row.post_id if row.kind in CONVERSATION else None
        groups.setdefault(post_id or row.id, []).append(row)
    return groups.values()


def _first(rows: Group) -> sa.Row[Any]:
    """Return the oldest notification that is not read, or the latest if all are read."""
    return next((row for row in reversed(rows) if not row.read), rows[0])


def _actors(rows: Group) -> Sequence[str]:
    """Return who has caused the notifications that are not read, latest first."""
    return [*dict.fromkeys(row.actor_id for row in rows if row.actor_id and not row.read)]


def _fetch(statement: sa.Select[Any], ids: set[str], **values: Any) -> dict[str, Item]:
    """Return the rows of a SELECT that have one of some ids, by their ids."""
    if not ids:
        return {}
    rows = fetch_all(statement, ids=sorted(ids), **values)
    return {item["id"]: item for item in to_items(rows)}
