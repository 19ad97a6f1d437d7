"""Requests of a member, and rows of the table, for the tests of notifications."""

from datetime import timedelta

import sqlalchemy as sa

from posting.db.base import db
from posting.db.types import new_id, now
from posting.notifications.models import Notification


def told(client, query=""):
    """Return the notifications of a client, newest first."""
    response = client.get(f"/notifications{query}")
    assert response.status_code == 200, response.text
    return response.json


def kinds_of(client):
    return [notification["kind"] for notification in told(client)]


def read(client, notification):
    return client.post("/notifications/read", json={"up_to": notification["id"]})


def choose(client, post, level):
    response = client.put(f"/posts/{post['id']}/subscription", json={"level": level})
    assert response.status_code == 200, response.text


def count_rows(app, **columns):
    with app.app_context():
        statement = sa.select(sa.func.count()).select_from(Notification)
        return db.session.scalar(statement.filter_by(**columns))


def add(app, client, number, **values):
    """Add notifications of a client, each newer than the one before."""
    start = values.pop("created_at", now())
    with app.app_context():
        rows = [
            {
                "user_id": client.user["id"],
                "created_at": start + timedelta(milliseconds=each),
                "id": new_id(),
                "kind": "comment",
                **values,
            }
            for each in range(number)
        ]
        db.session.execute(sa.insert(Notification), rows)
        db.session.commit()
