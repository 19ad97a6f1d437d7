"""Changes on Postgres, which are listed when all transactions that began before them have ended."""

from time import monotonic, sleep
from typing import Any

import sqlalchemy as sa
from flask.testing import FlaskClient

from posting.db.base import db


def wait_for_others(client: FlaskClient) -> None:
    """Wait until the transactions that began before now have ended, also in other databases."""
    with client.application.app_context(), db.engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            return
        number = connection.scalar(sa.text("SELECT pg_current_xact_id()::text::bigint"))
        connection.commit()
        end = sa.text("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
        deadline = monotonic() + 60
        while connection.scalar(end) <= number:
            assert monotonic() < deadline, "another transaction has not ended"
            sleep(0.01)


def cursor_of_now(client: FlaskClient) -> str:
    """Return a cursor after which nothing is listed until something changes."""
    wait_for_others(client)
    response = client.get("/changes")
    assert (response.status_code, response.json["changes"]) == (200, [])
    cursor: str = response.json["cursor"]
    return cursor


def changes_after(client: FlaskClient, cursor: str) -> list[dict[str, Any]]:
    """Return the changes after a cursor, oldest first."""
    wait_for_others(client)
    response = client.get(f"/changes?after={cursor}")
    assert response.status_code == 200, response.text
    changes: list[dict[str, Any]] = response.json["changes"]
    return changes
