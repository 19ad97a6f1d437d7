"""Files that appear under their name when they are whole, for their owner alone."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click


class InTheWay(click.ClickException):
    """What a file is to be called is the name of something else; the message says what to do."""


@contextmanager
def appearing(file: Path, *, replace: bool, sides: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield a new file, which at the end is `file`, or what that links to, and is on the disk.

    `sides` are the endings of files that may stand beside it. They go with what is replaced.

    Errors: OSError; InTheWay when `file` or one beside it is there and may not be replaced, or is
    no ordinary file. All is then as it was.
    """
    target = Path(os.path.realpath(file))
    beside = [target.with_name(target.name + end) for end in sides]
    for each in (target, *beside):
        _ensure_free(each, replace)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield draft
        _sync(draft)
        if replace:
            for each in beside:
                each.unlink(missing_ok=True)
            draft.replace(target)
        else:
            _name(draft, target)
        _sync(target.parent)
    finally:
        for end in ("", *sides):
            draft.with_name(draft.name + end).unlink(missing_ok=True)


def _ensure_free(file: Path, replace: bool) -> None:
    if not os.path.lexists(file):
        return
    if not file.is_file():
        raise InTheWay(f"{file} is no ordinary file. Name another.")
    if not replace:
        raise InTheWay(f"{file} is there already. Name another file, or replace it: --force")


def _name(draft: Path, file: Path) -> None:
    """Give a draft its name, unless somebody has made such a file meanwhile."""
    try:
        os.link(draft, file)
    except FileExistsError:
        _ensure_free(file, replace=False)
        raise
    except OSError:  # such as on a stick with FAT, which has no links
        draft.replace(file)
    else:
        draft.unlink()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
