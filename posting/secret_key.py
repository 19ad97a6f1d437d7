"""The key that signs page cursors: given, read from a file, or made once."""

import os
import secrets
from pathlib import Path

from flask import Flask

from posting.config import StartError

LEAST_LENGTH = 16


def init_app(app: Flask) -> None:
    """Find the app's key, and tell its file if it has one. Error: StartError if none is good."""
    key = app.config["SECRET_KEY"]
    if path := app.config["SECRET_KEY_FILE"]:
        key = _read(Path(path))
    elif not key and app.testing:
        key = secrets.token_urlsafe(32)
    elif not key:
        made = Path(app.instance_path) / "secret_key"
        key = _made_once(made)
        app.config["SECRET_KEY_FILE"] = str(made)
    for each in (key, *app.config["SECRET_KEY_FALLBACKS"]):
        if len(each) < LEAST_LENGTH:
            raise StartError(
                f"SECRET_KEY or SECRET_KEY_FALLBACKS has a key of under {LEAST_LENGTH} characters. "
                'Make one with: python3 -c "import secrets; print(secrets.token_urlsafe())"'
            )
    app.config["SECRET_KEY"] = key


def _read(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o007:
            raise StartError(
                f"The secret key in {path} is open to everybody on this machine. "
                f"Run: chmod o= {path} (or, of a container's secret, mount it with mode 0440)"
            )
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(
            f"The secret key in {path} cannot be read ({error}). "
            "Let the service's user read it, or name another file with POSTING_SECRET_KEY_FILE."
        ) from None


def _made_once(path: Path) -> str:
    """Return the key in `path`, made now if there is none; processes that race get the same one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(descriptor, "w") as file:
                    file.write(secrets.token_urlsafe(32))
                os.link(draft, path)  # appears whole, or loses to another process's
            except FileExistsError:
                pass
            finally:
                draft.unlink()
    except OSError as error:
        raise StartError(
            f"The secret key cannot be kept in {path.parent} ({error.strerror}). Make the folder "
            "writable for the service's user, or set POSTING_SECRET_KEY."
        ) from None
    return _read(path)
