"""Back up the database and the operator's files into a folder, and restore them from it."""

import shutil
from filecmp import cmp
from pathlib import Path

from click import ClickException
from dotenv import find_dotenv
from flask import current_app
from flask.helpers import get_load_dotenv

from posting.config import ABOUT, CUSTOM_CSS
from posting.db.base import db
from posting.ops import backup
from posting.ops.files import atomic_write, command_errors, inherit_access, kept_name

DATABASE, DUMP = "posting.db", "posting.dump"  # of SQLite and of Postgres
SETTINGS = ".env"
NAMES = (ABOUT, CUSTOM_CSS, SETTINGS)


def database_name() -> str:
    """Return the name of the database in a backup of this installation."""
    return DUMP if db.engine.dialect.name == "postgresql" else DATABASE


def own_files() -> dict[str, Path]:
    """Return the files of the installation that are not in the database, by their names."""
    instance = Path(current_app.instance_path)
    files = {name: instance / name for name in (ABOUT, CUSTOM_CSS)}
    if get_load_dotenv() and (settings := find_dotenv(SETTINGS, usecwd=True)):
        files[SETTINGS] = Path(settings)
    return {name: file for name, file in files.items() if file.is_file()}


def back_up(folder: Path, *, force: bool) -> list[str]:
    """Copy the database and the operator's files into a folder, and return their names.

    Only their owner can read the copies. With `force`, they replace an earlier backup in the
    folder, and files that only the earlier backup had are deleted. The database is copied first: if
    that fails, the earlier backup is complete.

    Raise ClickException if something cannot be copied, if the folder has a backup and there is no
    `force`, or if it has other files of these names.
    """
    earlier = [name for name in (DATABASE, DUMP, *NAMES) if (folder / name).exists()]
    if earlier and not {DATABASE, DUMP}.intersection(earlier):
        raise ClickException(
            f"{folder} has {earlier[0]}, but no database: it is not a backup. "
            "Choose another folder."
        )
    if earlier and not force:
        raise ClickException(
            f"{folder / earlier[0]} already exists. Choose another folder, or add --force."
        )
    files, is_new, database = own_files(), not folder.exists(), database_name()
    with command_errors(f"{folder} cannot be written"):
        folder.mkdir(mode=0o700, exist_ok=True)
    try:
        backup.back_up(folder / database, force=force)
        for name, file in files.items():
            with (
                command_errors(f"{file} cannot be copied to {folder}"),
                atomic_write(folder / name, replace=force) as draft,
            ):
                shutil.copyfile(file, draft)
    except BaseException:
        if is_new:
            shutil.rmtree(folder)
        raise
    for name in set(earlier) - {database, *files}:
        (folder / name).unlink()
    return [database, *files]


def restore(folder: Path, *, force: bool) -> tuple[list[str], list[Path], bool]:
    """Restore the database, `about.md` and `custom.css` to what they were at the time of a backup.

    The settings are not restored: they belong to the machine, and the user of the service may not
    write them.

    Raise ClickException as `backup.restore` does, and if there is no `force` and a file differs.

    Return the names of the operator's files that have changed, the files that keep the previous
    content, and whether the schema is older.
    """
    instance = Path(current_app.instance_path)
    with command_errors(f"{folder} cannot be compared with {instance}"):
        changes = [
            name for name in (ABOUT, CUSTOM_CSS) if not _is_same(folder / name, instance / name)
        ]
    for name in changes:
        if (instance / name).exists() and not force:
            raise ClickException(
                f"{instance / name} differs from the backup. "
                "Add --force to replace it and keep a copy of it."
            )
    kept, needs_upgrade = backup.restore(folder / database_name(), force=force)
    for name in changes:
        own = instance / name
        with command_errors(f"The database is restored, but {own} is not"):
            former = kept_name(own)
            if own.exists():
                own.rename(former)
                kept.append(former)
            if (folder / name).exists():
                with atomic_write(own, replace=False) as draft:
                    shutil.copyfile(folder / name, draft)
                    inherit_access(draft, former)
    return changes, kept, needs_upgrade


def other_settings(folder: Path) -> Path | None:
    """Return the settings of a backup, if they are not those of this installation."""
    own = own_files().get(SETTINGS)
    found = folder / SETTINGS
    with command_errors(f"{found} cannot be read"):
        return found if found.exists() and not (own and _is_same(found, own)) else None


def _is_same(one: Path, another: Path) -> bool:
    """Return whether two files have the same content, or are both missing."""
    if one.exists() and another.exists():
        return cmp(one, another, shallow=False)
    return one.exists() == another.exists()
