"""The inbox of a member: notifications about comments on one post, or reactions, are together."""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from posting.accounts.models import User
from posting.accounts.schemas import Author
from posting.comments.models import Comment
from posting.db.transactions import fetch_all
from posting.db.types import Position
from posting.notifications.models import CONVERSATION, REACTION, Notification
from posting.notifications.schemas import MAX_ACTORS
from posting.notifications.store import IS_OWN, NOTIFICATIONS, may_see, shorten_excerpts
from posting.posts.models import DELETED_POSTS
from posting.web.pagination import Page, paginate
from posting.web.schemas import Item, columns, to_items

# A member has about a thousand notifications at most, so all are fetched and grouped in Python.
_about = sa.func.coalesce(Notification.post_id, Comment.post_id)
_ALL = (
    sa.select(
        Notification.created_at,
        Notification.id,
        Notification.kind,
        Notification.read.label("read"),
        Notification.actor_id,
        Notification.comment_id,
        _about.label("post_id"),
    )
    .outerjoin(Comment, Comment.id == Notification.comment_id)
    .where(IS_OWN, sa.or_(_about.is_(None), _about.not_in(DELETED_POSTS)))
    .order_by(Notification.created_at.desc(), Notification.id.desc())
)
_ids: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True)
_SOME = NOTIFICATIONS.where(Notification.id.in_(_ids))
_ACTORS = sa.select(*columns(Author, User)).where(User.id.in_(_ids), may_see(User))
TRIES = 3  # to read groups, none of which loses its latest notification meanwhile

Group = list[sa.Row[Any]]  # newest first
Items = dict[str, Item]  # by their ids


def list_by_post(user_id: str, *, limit: int, cursor: str | None, is_moderator: bool) -> Page:
    """Return a page of the notifications of a user, grouped by post, newest first."""
    reader = {"recipient": user_id, "is_moderator": is_moderator}
    for _ in range(TRIES):
        groups = {rows[0].id: rows for rows in _group(fetch_all(_ALL, recipient=user_id))}
        places = [(rows[0].created_at, id) for id, rows in groups.items()]
        chosen: list[Position] = []

        def find(after: Position | None, most: int) -> list[Position]:
            chosen[:] = [place for place in places if after is None or place < after][:most]  # noqa: B023 - called at once
            return chosen  # noqa: B023 - as above

        page = paginate(
            NOTIFICATIONS,
            limit=limit,
            cursor=cursor,
            name="notifications_by_post",
            newest_first=True,
            parameters=reader,
            find=find,
        )
        if len(page.items) == len(chosen[:limit]):
            break
    shorten_excerpts(page.items)
    shown = [(latest, groups[latest["id"]]) for latest in page.items]
    firsts = _fetch(_SOME, {_first(rows).id for _, rows in shown}, **reader)
    shorten_excerpts(firsts.values())
    ids = {row.actor_id for _, rows in shown for row in rows if row.actor_id}
    actors = _fetch(_ACTORS, ids, is_moderator=is_moderator)
    return Page([_item(rows, latest, firsts, actors) for latest, rows in shown], page.next_cursor)


def _item(rows: Group, latest: Item, firsts: Items, actors: Items) -> Item:
    """Return a group as it is sent."""
    unread = [row for row in rows if not row.read]
    caused_by = [*dict.fromkeys(row.actor_id for row in unread)]
    named = [actors[id] for id in caused_by if id in actors]
    has_others = len(named) < len(caused_by)  # such as members who have deleted their accounts
    return {
        "post": latest["post"],
        "unread": len(unread),
        "actors": named[:MAX_ACTORS],
        "actor_count": len(named) + has_others,
        "first": firsts.get(_first(rows).id, latest),
        "latest": latest,
    }


def _group(rows: Iterable[sa.Row[Any]]) -> Iterable[Group]:
    """Group notifications, in the order of the latest of each group."""
    groups: dict[str, Group] = {}
    for row in rows:
        groups.setdefault(_key(row), []).append(row)
    return groups.values()


def _key(row: sa.Row[Any]) -> str:
    """Return what the notifications of a group have in common."""
    if row.kind == REACTION:
        return f"{REACTION} {row.comment_id or row.post_id}"
    return str(row.post_id if row.kind in CONVERSATION and row.post_id else row.id)


def _first(rows: Group) -> sa.Row[Any]:
    """Return the oldest notification that is not read, or the latest if all are read."""
    return next((row for row in reversed(rows) if not row.read), rows[0])


def _fetch(statement: sa.Select[Any], ids: set[str], **values: Any) -> Items:
    """Return the rows of a SELECT that have one of some ids, by their ids."""
    if not ids:
        return {}
    rows = fetch_all(statement, ids=sorted(ids), **values)
    return {item["id"]: item for item in to_items(rows)}
