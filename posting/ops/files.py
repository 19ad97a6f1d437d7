"""The files that commands write, and errors of files and databases."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from click import ClickException
from pysqlite3 import dbapi2 as sqlite

from posting.db.engine import is_in_memory
from posting.db.errors import error_reason
from posting.db.types import now

KEPT, KEPT_TIME = ".before-restore-", "%Y%m%dT%H%M%SZ"


@contextmanager
def command_errors(failure: str) -> Iterator[None]:
    """Raise errors of files and databases as ClickException.

    `failure` says what could not be done with the file; the reason is added to it.
    """
    try:
        yield
    except (OSError, sqlite.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ClickException(f"{failure} ({reason}).") from None
    except sa.exc.SQLAlchemyError as error:
        fix = "Check that it is running, that its disk has space and that nothing else writes."
        passing = isinstance(error, sa.exc.OperationalError)  # others come from damaged data
        if isinstance(error, sa.exc.DatabaseError) and not passing:
            fix = "Run: flask doctor"
        raise ClickException(f"The database failed ({error_reason(error)}). {fix}") from None


def kept_name(file: Path) -> Path:
    """Return the file in which a restore keeps what it replaces."""
    return file.with_name(f"{file.name}{KEPT}{now():{KEPT_TIME}}")


def inherit_access(draft: Path, file: Path) -> None:
    """Give a finished draft the owner and the mode of the file that it replaces.

    If there is no such file, the draft gets the owner of the folder and stays private. The service
    may run as another user than the command, and must be able to open the file. Only root can set
    any owner. Other users can only set a group that they are in.
    """
    try:
        like = file.stat()
        draft.chmod(stat.S_IMODE(like.st_mode))
    except FileNotFoundError:
        like = file.parent.stat()
    try:
        os.chown(draft, like.st_uid, like.st_gid)
    except PermissionError:
        if os.geteuid() == 0:
            raise


def refuse_memory() -> None:
    """Raise ClickException if the database is in memory, where it would end with the command."""
    if is_in_memory():
        raise ClickException(
            "The database is in memory and ends with this command. "
            "Set POSTING_DATABASE_URL to a file."
        )


@contextmanager
def atomic_write(file: Path, *, replace: bool, sidecars: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield a new file, private to its owner, that is renamed to `file` when the block succeeds.

    So `file` is complete and on disk as soon as it exists. A link is followed. `sidecars` are the
    suffixes of files that may stand beside `file` and belong to it: they are deleted when it is
    replaced.

    Raise OSError, or ClickException if `file` or a sidecar exists and `replace` is false, or is
    not a regular file. After an error everything is as it was.
    """
    target = Path(os.path.realpath(file))
    beside = [target.with_name(target.name + suffix) for suffix in sidecars]
    for path in (target, *beside):
        _check_target(path, replace)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield draft
        _sync(draft)
        if replace:
            for path in beside:
                path.unlink(missing_ok=True)
            draft.replace(target)
        else:
            try:
                os.link(draft, target)  # a rename would overwrite a file created in the meantime
            except FileExistsError:
                raise
            except OSError:  # some file systems, such as FAT, have no hard links
                draft.replace(target)
        _sync(target.parent)
    finally:
        for suffix in ("", *sidecars):
            draft.with_name(draft.name + suffix).unlink(missing_ok=True)


def _check_target(path: Path, replace: bool) -> None:
    if os.path.lexists(path) and not path.is_file():
        raise ClickException(f"{path} is not a regular file. Choose another name.")
    if path.exists() and not replace:
        raise ClickException(f"{path} already exists. Choose another name, or add --force.")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
