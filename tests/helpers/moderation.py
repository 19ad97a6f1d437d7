"""Requests of members and moderators, for the tests of moderation."""

REASON = {"reason": "This is advertising."}


def suspend(moderator, client, **fields):
    body = {"reason": "Advertising."} | fields
    return moderator.put(f"/users/{client.user['id']}/suspension", json=body)


def log(client):
    """Return the actions in the log with their targets, newest first."""
    return [
        (act["action"], act["target"]["kind"], act["target"]["id"], act["reason"])
        for act in client.get("/moderation/log").json
    ]


def report(client, kind, target, reason="This is advertising."):
    response = client.post(f"/{kind}s/{target['id']}/reports", json={"reason": reason})
    assert response.status_code == 201, response.text
    return response.json


def decide(client, report, outcome="dismissed", **fields):
    return client.patch(f"/reports/{report['id']}", json={"outcome": outcome} | fields)


def open_reports(moderator):
    response = moderator.get("/reports")
    assert response.status_code == 200, response.text
    return response.json


def author_of(client):
    return {name: client.user[name] for name in ("id", "username", "display_name", "avatar_url")}
