"""The SQL of what owners choose for the site."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from posting.db.editing import edit
from posting.db.transactions import Row, execute, fetch_one, lock_table
from posting.db.types import new_id, now
from posting.images.codec import FACE_LIMITS
from posting.site.models import ONLY, Site
from posting.site.settings import CHOICES, TEXTS
from posting.web.errors import NoSuch


class NoSuchLogo(NoSuch, thing="logo"):
    pass


LARGE, SMALL = FACE_LIMITS
_columns = (Site.id, Site.version, Site.logo_id)
_LOCK = sa.select(*_columns, *(getattr(Site, name) for name in (*TEXTS, *CHOICES)))
_LOCK = _LOCK.with_for_update()
_INSERT = sa.insert(Site)
_LOGO = sa.select(Site.logo_id).where(Site.logo_id == sa.bindparam("id"))
_FILES = {
    side: _LOGO.add_columns(column.label("file"))
    for side, column in zip(FACE_LIMITS, (Site.logo, Site.small_logo), strict=True)
}


def lock_site() -> Row:
    """Lock the row of the site, which is created first if there is none, and return it.

    Call this first in a transaction, as `lock_table` says.
    """
    lock_table(Site)
    site = execute(_LOCK).one_or_none()
    if site is None:
        execute(_INSERT, id=ONLY)
        site = execute(_LOCK).one()
    return site


def edit_site(site: Row, changes: Mapping[str, Any]) -> list[str]:
    """Change the locked row of the site, and return the names of what this changes."""
    changed = [name for name, value in changes.items() if getattr(site, name) != value]
    edit(Site, site, changes)
    return changed


def note_backup(site: Row) -> None:
    """Note in the locked row of the site that an owner begins to download a backup."""
    execute(sa.update(Site).where(Site.id == site.id).values(backed_up_at=now()))


def replace_logo(site: Row, files: Mapping[int, bytes] | None) -> None:
    """Give the site, whose row is locked, a logo from its files by their sides, or none."""
    files, logo_id = files or {}, new_id() if files else None
    logo, small_logo = files.get(LARGE), files.get(SMALL)
    edit(Site, site, {"logo_id": logo_id, "logo": logo, "small_logo": small_logo}, is_edit=True)


def get_logo(id: str, side: int, *, without_data: bool) -> bytes:
    """Return the logo in a size, or no bytes if they are not needed. Raise NoSuchLogo."""
    row = fetch_one(_LOGO if without_data else _FILES[side], id=id)
    if row is None:
        raise NoSuchLogo
    return b"" if without_data else bytes(row.file)
