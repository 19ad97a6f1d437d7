"""The SQL of avatars."""

from collections.abc import Mapping

import sqlalchemy as sa

from posting.accounts.models import User
from posting.avatars.models import Avatar
from posting.changes import store as changes
from posting.db.transactions import execute, fetch_one
from posting.db.types import new_id
from posting.images.codec import FACE_LIMITS
from posting.web.errors import NoSuch


class NoSuchAvatar(NoSuch, thing="avatar"):
    pass


_ID = sa.select(Avatar.id).where(Avatar.id == sa.bindparam("id"))
_FILES = {
    side: _ID.add_columns(column.label("file"))
    for side, column in zip(FACE_LIMITS, (Avatar.data, Avatar.small), strict=True)
}
_DELETE = sa.delete(Avatar).where(Avatar.user_id == sa.bindparam("user"))
_INSERT = sa.insert(Avatar)
_SET_ID = sa.update(User).where(User.id == sa.bindparam("user"))
_SET_ID = _SET_ID.values(avatar_id=sa.bindparam("avatar"))


def get_file(id: str, side: int, *, without_data: bool) -> bytes:
    """Return an avatar in a size, or no bytes if they are not needed. Raise NoSuchAvatar."""
    row = fetch_one(_ID if without_data else _FILES[side], id=id)
    if row is None:
        raise NoSuchAvatar
    return b"" if without_data else bytes(row.file)


def replace_avatar(user_id: str, files: Mapping[int, bytes]) -> None:
    """Give a locked account another avatar, from its files by their sides."""
    execute(_DELETE, user=user_id)
    data, small = (files[side] for side in FACE_LIMITS)
    id = new_id()
    execute(_INSERT, id=id, user_id=user_id, data=data, small=small)
    _set_id(user_id, id)


def delete_avatar(user_id: str) -> bool:
    """Delete the avatar of a locked account, and return whether there was one."""
    if not execute(_DELETE, user=user_id).rowcount:
        return False
    _set_id(user_id, None)
    return True


def _set_id(user_id: str, avatar_id: str | None) -> None:
    """Set the avatar of an account. Its profile has changed, but this is not an edit."""
    execute(_SET_ID, user=user_id, avatar=avatar_id)
    changes.record_change("user", user_id, None, "edited")
