"""The index of names, in which members are found by the beginning of a name.

A username or display name is found by its words, which are those of `posting.search.words`. The
index has the words of each name, these words without the first one, without the first two, and so
on. So the beginning of each word in a name finds it too: `love` finds Ada Lovelace.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from posting.accounts import schemas
from posting.accounts.models import User
from posting.db.transactions import Row, fetch_all, fetch_value, in_transaction, transaction
from posting.db.types import ID_LENGTH
from posting.search.words import split_words
from posting.web.errors import InvalidInput, input_error
from posting.web.pagination import NOT_A_CURSOR, Page
from posting.web.schemas import select, to_items

MAX_WORDS = 8  # of a name; a character is a word in some scripts
MAX_LENGTH = 64  # characters of a name in the index
BATCH = 500
LAST_CHARACTER = "\U0010ffff"  # after all characters of words
# The name by which the last user of the page was found, and the id of this user.
CURSOR = re.compile(
    rf"found_users\.([^\0\ud800-\udfff]{{1,{MAX_LENGTH}}})\.([A-Za-z0-9_-]{{{ID_LENGTH}}})"
)

_NAMES = sa.table("user_search", sa.column("name", sa.String), sa.column("user_id", sa.String))
_place = sa.tuple_(_NAMES.c.name, _NAMES.c.user_id)
_FIND = (
    select(schemas.User, User)
    .add_columns(_NAMES.c.name.label("name"))
    .join(_NAMES, _NAMES.c.user_id == User.id)
    .where(_NAMES.c.name >= sa.bindparam("start"), _NAMES.c.name < sa.bindparam("end"))
    .where(~User.is_pending)
    .where(_place > sa.tuple_(sa.bindparam("after_name"), sa.bindparam("after_id")))
    .order_by(_NAMES.c.name, _NAMES.c.user_id)
    .limit(sa.bindparam("limit", type_=sa.Integer()))
)

_FOUND = (
    sa.select(User.id)
    .distinct()
    .join(_NAMES, _NAMES.c.user_id == User.id)
    .where(_NAMES.c.name >= sa.bindparam("start"), _NAMES.c.name < sa.bindparam("end"))
    .where(~User.is_pending)
    .limit(sa.bindparam("limit", type_=sa.Integer()))
    .subquery()
)
_COUNT = sa.select(sa.func.count()).select_from(_FOUND)

UserData = Mapping[Any, Any]  # the id, the username and the display name


class NameIndex:
    """The index of the names of all users. It is maintained like an `Index` of texts."""

    name = "user"
    table = _NAMES.name

    def add(self, users: Sequence[UserData]) -> None:
        """Index the names of new users within the transaction."""
        _add(in_transaction(), users)

    def replace(self, users: Sequence[UserData]) -> None:
        """Index users again within the transaction."""
        _replace(in_transaction(), users)

    def count_rows(self, connection: sa.Connection) -> int:
        return connection.scalar(sa.select(sa.func.count(User.id))) or 0

    def clear(self, connection: sa.Connection) -> None:
        connection.execute(sa.delete(_NAMES))

    def build(self, connection: sa.Connection) -> Iterator[int]:
        last = ""
        while users := connection.execute(_next_users(last)).mappings().all():
            _add(connection, users)
            last = users[-1]["id"]
            yield len(users)

    def rebuild(self) -> Iterator[int]:
        last = ""
        while True:
            with transaction() as connection:
                locking = _next_users(last).with_for_update(key_share=True)
                users = connection.execute(locking).mappings().all()
                _replace(connection, users)
            if not users:
                break
            last = users[-1]["id"]
            yield len(users)

    def count_stale(self, connection: sa.Connection) -> int:
        stale, last = 0, ""
        while users := connection.execute(_next_users(last)).mappings().all():
            found: dict[str, set[str]] = {user["id"]: set() for user in users}
            for row in connection.execute(sa.select(_NAMES).where(_NAMES.c.user_id.in_(found))):
                found[row.user_id].add(row.name)
            stale += sum(found[user["id"]] != _names_of(user) for user in users)
            last = users[-1]["id"]
        return stale


INDEX = NameIndex()


def list_users_by_name(words: str, *, limit: int, cursor: str | None) -> Page:
    """Return a page of the users whose names begin with these words, in the order of the names.

    If several names of a user begin with them, the first of these names decides. A page reads at
    most twice as many names as it may have users, so it may have fewer users although more follow.
    Raise 422 for a cursor of another list.
    """
    after_name, after_id = _read_cursor(cursor) if cursor is not None else ("", "")
    prefix = _prefix_of(words)
    if not prefix:
        return Page([], None)
    rows = fetch_all(
        _FIND,
        start=max(prefix, after_name),
        end=prefix + LAST_CHARACTER,
        after_name=after_name,
        after_id=after_id,
        limit=2 * limit + 1,
    )
    shown: list[Row] = []
    read = 0
    while len(shown) < limit and read < min(len(rows), 2 * limit):
        row = rows[read]
        read += 1
        names = [name for name in _names_of(row._mapping) if name.startswith(prefix)]
        if row.name == min(names, default=None):
            shown.append(row)
    last = rows[read - 1] if read < len(rows) else None
    items = to_items(shown)
    for item in items:
        del item["name"]
    return Page(items, f"found_users.{last.name}.{last.id}" if last else None)


def count_users_by_name(words: str, most: int) -> int:
    """Return how many users have a name that begins with these words, or more than `most`."""
    prefix = _prefix_of(words)
    if not prefix:
        return 0
    count: int = fetch_value(_COUNT, start=prefix, end=prefix + LAST_CHARACTER, limit=most + 1)
    return count


def _prefix_of(words: str) -> str:
    return " ".join(split_words(words)[:MAX_WORDS])[:MAX_LENGTH]


def _read_cursor(cursor: str) -> tuple[str, str]:
    match = CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput([input_error(NOT_A_CURSOR, parameter="cursor")])
    return match[1], match[2]


def _names_of(user: UserData) -> set[str]:
    """Return the names by which the index has a user."""
    found = set()
    for text in (user["username"], user["display_name"] or ""):
        words = split_words(text)[:MAX_WORDS]
        found |= {" ".join(words[start:])[:MAX_LENGTH] for start in range(len(words))}
    return found


def _add(connection: sa.Connection, users: Collection[UserData]) -> None:
    rows = [
        {"name": name, "user_id": user["id"]} for user in users for name in sorted(_names_of(user))
    ]
    if rows:
        connection.execute(sa.insert(_NAMES), rows)


def _replace(connection: sa.Connection, users: Collection[UserData]) -> None:
    ids = [user["id"] for user in users]
    connection.execute(sa.delete(_NAMES).where(_NAMES.c.user_id.in_(ids)))
    _add(connection, users)


def _next_users(last: str) -> sa.Select[str, str, str | None]:
    """Select the next users by id."""
    users = sa.select(User.id, User.username, User.display_name)
    return users.where(User.id > last).order_by(User.id).limit(BATCH)
