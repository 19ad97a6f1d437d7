"""The state of the service, and the download of a backup, for owners."""

import errno
from collections.abc import Generator
from threading import Lock
from time import monotonic

from click import ClickException
from flask import Response, current_app, request
from werkzeug.exceptions import ServiceUnavailable

from posting.accounts import sessions
from posting.accounts.current_user import (
    CONFIRMED_OWNER_REQUIRED,
    OWNER_SESSION_REQUIRED,
    NotConfirmed,
    current_user,
)
from posting.db.transactions import snapshot, unit_of_work
from posting.db.types import now
from posting.moderation import log
from posting.notifications.telling import tell_of_backup
from posting.ops import schemas
from posting.ops.archive.exporting import count_rows, export_rows
from posting.ops.state import describe_state
from posting.site import store
from posting.site.models import ONLY
from posting.site.views import lock_site
from posting.web.endpoint import Blueprint, Reply
from posting.web.errors import Coded
from posting.web.logs import audit
from posting.web.streaming import stream

MAX_SECONDS = 2 * 60 * 60  # of a download, during which the database keeps what is deleted
GZIP = "application/gzip"

keeping = Blueprint("keeping", __name__, description="How the service is kept, for owners")

_is_running = Lock()  # held during a download, so that each worker has one at a time


class BackupBusy(Coded, ServiceUnavailable):
    error_code = "backup_busy"
    description = "Another backup is under way; try again when it has ended."

    def __init__(self) -> None:
        super().__init__(retry_after=60)


@keeping.get("/site/state", access=OWNER_SESSION_REQUIRED, returns=schemas.State())
def get_state() -> Reply:
    """Read how the service is kept: what is wrong, the backups, the disk, and the first steps."""
    return describe_state()


@keeping.get(
    "/backup",
    access=CONFIRMED_OWNER_REQUIRED,
    streams=True,
    returns={"type": "string", "format": "binary"},
    media_type=GZIP,
    headers=["Content-Disposition", "X-Accel-Buffering"],
    errors=[BackupBusy],
)
def download_backup() -> Reply:
    """Download all content of the site as an archive, which `flask import` reads.

    It is consistent, although others write meanwhile. It contains everything but passwords in
    plain text, so keep it secret. First give your password again, with `POST
    /session-confirmations`: this allows one download within five minutes. The log of moderation has
    an entry, and all owners get a notification. A download ends after two hours.
    """
    if request.method == "HEAD":
        if _is_running.locked():
            raise BackupBusy
        return Response(mimetype=GZIP)
    if not _is_running.acquire(blocking=False):
        raise BackupBusy
    try:
        with unit_of_work():
            store.note_backup(lock_site())
            if not sessions.take_confirmation(current_user.session_id):
                raise NotConfirmed
            log.record_act("downloaded", "backup", ONLY, None)
            tell_of_backup(current_user.id)
    except BaseException:
        _is_running.release()
        raise
    audit("backup-downloaded")
    name = f"posting-{now():%Y-%m-%d}.jsonl.gz"
    response = stream(make_backup(), mimetype=GZIP, name=name, release=_is_running.release)
    # nginx would keep what a slow client has not read yet in a file.
    response.headers["X-Accel-Buffering"] = "no"
    return response


def make_backup() -> Generator[bytes, None, None]:
    """Yield the parts of an archive. End the connection if it cannot be completed."""
    give_up = monotonic() + MAX_SECONDS
    try:
        with snapshot() as connection:
            for part in export_rows(connection, count_rows(connection)):
                if monotonic() > give_up:
                    raise ClickException(f"It has taken more than {MAX_SECONDS:,} seconds.")
                yield part
    except ClickException as error:
        current_app.logger.error("The download of a backup ended early. %s", error.message)
        # By the missing end of the response, the client knows that the file is not complete.
        raise ConnectionResetError(errno.ECONNRESET, "The backup is not complete") from None
