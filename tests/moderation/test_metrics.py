"""The numbers of open reports and of applications: metrics, and a count for moderators."""

import pytest
import sqlalchemy as sa

from tests.conftest import apply

pytestmark = pytest.mark.usefixtures("stays_consistent")


def test_metrics_are_served_without_the_database(make_app, monkeypatch):
    def fail():
        raise sa.exc.OperationalError("SELECT 1", {}, Exception("it is gone"))

    app = make_app(METRICS="on")
    monkeypatch.setattr("posting.site.views.count_open_reports", fail)
    response = app.test_client().get("/metrics")
    assert response.status_code == 200
    assert "posting_requests_total" in response.text


def test_open_reports_and_applications_are_metrics(make_app, app, bob, post):
    apply(app)
    bob.post(f"/posts/{post['id']}/reports", json={"reason": "No."})
    text = make_app(METRICS="on").test_client().get("/metrics").text
    assert "posting_open_reports 1.0" in text
    assert "posting_pending_applications 1.0" in text


def test_moderators_read_how_much_waits(app, bob, moderator, post):
    assert moderator.get("/moderation/open").json == {"reports": 0, "applications": 0}
    for _ in range(2):
        apply(app)
    bob.post(f"/posts/{post['id']}/reports", json={"reason": "No."})
    assert moderator.get("/moderation/open").json == {"reports": 1, "applications": 2}


def test_moderators_read_a_hundred_at_most(app, moderator, monkeypatch):
    monkeypatch.setattr("posting.moderation.schemas.MAX_COUNT", 2)
    for _ in range(3):
        apply(app)
    assert moderator.get("/moderation/open").json == {"reports": 0, "applications": 2}
