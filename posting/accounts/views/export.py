"""The export of one's own data."""

from functools import partial
from threading import Lock

from werkzeug.exceptions import ServiceUnavailable

from posting.accounts.current_user import SESSION_REQUIRED, current_user
from posting.accounts.export import export_account
from posting.web.endpoint import Blueprint, Reply
from posting.web.errors import Coded
from posting.web.logs import audit
from posting.web.streaming import stream

PLACES = 2  # exports at a time in each worker, of different members

own_data = Blueprint("own_data", __name__, description="All that you have on the site")

_running: set[str] = set()
_lock = Lock()


class ExportBusy(Coded, ServiceUnavailable):
    error_code = "export_busy"
    description = "Another export is under way; try again when it has ended."

    def __init__(self) -> None:
        super().__init__(retry_after=30)


@own_data.get(
    "/users/me/export",
    access=SESSION_REQUIRED,
    streams=True,
    returns={"type": "string", "format": "binary"},
    media_type="application/zip",
    headers=["Content-Disposition"],
    errors=[ExportBusy],
)
def export_me() -> Reply:
    """Download all that you have on the site, as a ZIP of JSON files, images and files.

    A member can have one export at a time, and a worker of the service makes two.
    """
    user_id = current_user.id
    with _lock:
        if user_id in _running or len(_running) >= PLACES:
            raise ExportBusy
        _running.add(user_id)
    audit("account-exported")
    return stream(
        export_account(user_id),
        mimetype="application/zip",
        name=f"{current_user.username}.zip",
        release=partial(_running.discard, user_id),
    )
