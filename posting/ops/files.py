"""Write files atomically: complete and on disk before they get their name."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click


class TargetExistsError(click.ClickException):
    """The file to write already exists; the message says how to continue."""


@contextmanager
def atomic_write(file: Path, *, replace: bool, sidecars: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield a new file, private to its owner, that is renamed to `file` when the block succeeds.

    A link is followed. `sidecars` are the suffixes of files that may stand beside `file` and belong
    to it: they are deleted when it is replaced.

    Raise OSError, or TargetExistsError if `file` or a sidecar exists and `replace` is false, or is
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
                _check_target(target, replace)
                raise
            except OSError:  # some file systems, such as FAT, have no hard links
                draft.replace(target)
        _sync(target.parent)
    finally:
        for suffix in ("", *sidecars):
            draft.with_name(draft.name + suffix).unlink(missing_ok=True)


def _check_target(path: Path, replace: bool) -> None:
    if not os.path.lexists(path):
        return
    if not path.is_file():
        raise TargetExistsError(f"{path} is not a regular file. Choose another name.")
    if not replace:
        raise TargetExistsError(f"{path} already exists. Choose another name, or add --force.")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
