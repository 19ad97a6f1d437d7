"""The state of the service: what is wrong, the backups, the disk, and the first steps."""

import shutil
from typing import Any

import sqlalchemy as sa
from flask import current_app

from posting.accounts.models import MEMBER, User
from posting.db.base import db
from posting.db.engine import sqlite_file
from posting.db.transactions import fetch_all, fetch_value
from posting.db.types import to_rfc3339
from posting.invitations.models import Invitation
from posting.ops.doctor import upkeep
from posting.ops.doctor.installation import find_newest_backup
from posting.posts.models import Post
from posting.site.models import Site
from posting.web.schemas import Item

_POSTGRES_SIZE = sa.select(sa.func.pg_database_size(sa.func.current_database()))
_SQLITE_SIZE = sa.text("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")


def describe_state() -> Item:
    """Return what owners see of how the service is kept."""
    nightly, downloaded = find_newest_backup(), fetch_value(sa.select(Site.backed_up_at))
    is_postgres, file = db.engine.dialect.name == "postgresql", sqlite_file()
    return {
        "findings": [vars(finding) for finding in upkeep.find_problems()],
        "nightly_backup_at": nightly and to_rfc3339(nightly),
        "downloaded_at": downloaded and to_rfc3339(downloaded),
        "database_bytes": fetch_value(_POSTGRES_SIZE if is_postgres else _SQLITE_SIZE),
        "free_bytes": shutil.disk_usage(file.parent).free if file else None,
        "first_steps": _first_steps(has_backup=bool(nightly or downloaded)),
    }


def _first_steps(*, has_backup: bool) -> dict[str, Any]:
    config = current_app.config
    members = fetch_all(sa.select(User.id).limit(2))
    return {
        "description": bool(config["DESCRIPTION"] or config["ABOUT"]),
        "rules": bool(config["RULES"]),
        "invitation": len(members) > 1 or _exists(Invitation.role == MEMBER),
        "post": _exists(Post.id.is_not(None)),
        "backup": has_backup,
    }


def _exists(condition: sa.ColumnElement[bool]) -> bool:
    return bool(fetch_value(sa.select(sa.exists().where(condition))))
