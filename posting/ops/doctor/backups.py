"""Checks of the nightly backups, and of what a restore has left."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flask import current_app

from posting.db.engine import sqlite_file
from posting.db.types import now
from posting.ops.backup_folder import DATABASE, DUMP
from posting.ops.doctor.findings import Finding, Findings, ok, warning
from posting.ops.files import KEPT, KEPT_TIME
from posting.plurals import count

FOLDER = Path("/var/backups/posting")  # as in deploy/posting-backup.service
MAX_AGE = timedelta(days=2)
MAKE_BACKUPS = (
    "Back up every night: docs/operating.md shows how. If your backups are in another place, "
    "ignore the warning."
)
CHECK_BACKUP = (
    "Check the nightly backup, with systemd for example: "
    "systemctl status posting-backup.timer posting-backup.service"
)


def check() -> Findings:
    yield _check_age()
    file = sqlite_file()
    folders = {Path(current_app.instance_path), *([file.parent] if file else [])}
    for kept in sorted(path for folder in folders for path in folder.glob(f"*{KEPT}*")):
        try:
            time = datetime.strptime(kept.name.rpartition(KEPT)[2], KEPT_TIME).replace(tzinfo=UTC)
        except ValueError:
            continue  # a file beside another one, such as its -wal
        age = count((now() - time).days, "day")
        yield warning(
            f"{kept} is what `flask restore` replaced {age} ago",
            f"When you no longer need it, run: rm {kept}*",
        )


def _check_age() -> Finding:
    """Check that there is a backup, of whichever database, and that it is new."""
    if not FOLDER.is_dir():
        return warning(f"There are no backups: there is no folder {FOLDER}", MAKE_BACKUPS)
    if not os.access(FOLDER, os.R_OK | os.X_OK):
        return warning(f"{FOLDER} cannot be read", "Run this as the service's user.")
    backups = [*FOLDER.glob(f"*/{DATABASE}"), *FOLDER.glob(f"*/{DUMP}"), *FOLDER.glob("*.db")]
    newest = max(map(_modified, backups), default=None)
    since = newest or _modified(FOLDER)
    message = f"There is no backup in {FOLDER} yet"
    if newest:
        message = f"The newest backup in {FOLDER} is from {newest:%Y-%m-%d %H:%M} UTC"
    return ok(message) if now() - since <= MAX_AGE else warning(message, CHECK_BACKUP)


def _modified(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)
