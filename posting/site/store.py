"""The SQL of what owners choose for the site."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from posting.db.editing import edit
from posting.db.transactions import Row, execute, fetch_one, lock_table
from posting.db.types import new_id, now
from posting.site.models import ONLY, Site
from posting.site.settings import CHOICES, TEXTS
from posting.web.errors import NoSuch


class NoSuchLogo(NoSuch, thing="logo"):
    pass


class NoSuchCover(NoSuch, thing="cover"):
    pass


_columns = (Site.id, Site.version, Site.logo_id, Site.cover_id)
_LOCK = sa.select(*_columns, *(getattr(Site, name) for name in (*TEXTS, *CHOICES)))
_LOCK = _LOCK.with_for_update()
_INSERT = sa.insert(Site)
_MISSING = {"logo": NoSuchLogo, "cover": NoSuchCover}


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


def replace_picture(site: Row, name: str, files: Sequence[bytes] | None) -> None:
    """Give the site, whose row is locked, a logo or cover from its large and small file, or none.

    `name` is "logo" or "cover".
    """
    large, small = files or (None, None)
    id = new_id() if files else None
    edit(Site, site, {f"{name}_id": id, name: large, f"small_{name}": small}, is_edit=True)


def get_picture(name: str, id: str, *, is_small: bool, without_data: bool) -> bytes:
    """Return the logo or cover in a size, or no bytes if they are not needed.

    Raise NoSuchLogo or NoSuchCover.
    """
    id_column: sa.ColumnElement[str | None] = getattr(Site, f"{name}_id")
    file = sa.null() if without_data else getattr(Site, f"small_{name}" if is_small else name)
    row = fetch_one(sa.select(file.label("file")).where(id_column == id))
    if row is None:
        raise _MISSING[name]
    return b"" if without_data else bytes(row.file)
