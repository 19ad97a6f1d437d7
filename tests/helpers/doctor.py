"""Run the checks of `flask doctor`."""

import click

from posting import create_app
from posting.db.base import db
from posting.ops.doctor import examination
from posting.posts.models import Post
from posting.posts.store import INDEX

GOOD = {
    "PASSWORD_HASH": "scrypt:32768:8:3",
    "RATE_LIMITS": "on",
    "PUBLIC_URL": "https://example.org",
    "PROXY_HOPS": 1,
}
MIB = 2**20


def examine(app):
    with app.app_context():
        return list(examination.examine())


def problems(app):
    """Return the level and message of all findings but ok; assert that each has a fix."""
    found = [finding for finding in examine(app) if finding.level != "ok"]
    assert all(finding.fix for finding in found)
    return [(finding.level, finding.message) for finding in found]


def only_problem(app, level, part):
    """Assert that there is one problem, with `part` in its message; return its fix."""
    [(found, message)] = problems(app)
    assert found == level
    assert part in message
    return next(finding.fix for finding in examine(app) if finding.level != "ok")


def add_post(app, **values):
    """Add a post to the database and to the search index."""
    with app.app_context():
        db.session.add(Post(title="x", content="x", **values))
        db.session.flush()
        INDEX.clear(db.session.connection())
        list(INDEX.build(db.session.connection()))
        db.session.commit()


def unstarted(**settings):
    """An app as `flask` creates it for a command, which does not connect to the database."""
    with click.Context(click.Command("flask")):
        return create_app({"TESTING": True} | GOOD | settings)
