"""The order of the hooks: swapping two that depend on it changes a response."""

import pytest

from posting import app as factory
from posting.db.base import db
from posting.web import etags, hosts, logs, response_cache, security

URL = "https://posting.example"


def probe(client, caplog):
    """Return the observable results of a few requests, or the error that they raise."""
    results = {}
    try:
        health = client.get("/healthz", headers={"If-None-Match": "*"})
        results["conditional"] = health.status_code, "ETag" in health.headers
        results["logged"] = "status=304" in caplog.messages[-1]
        results["listed"] = client.get("/posts", headers={"If-None-Match": "*"}).status_code
        cache = client.application.extensions[response_cache.EXTENSION]
        results["cached"] = "/posts" in str(vars(cache))
        hostile = {"Host": "other.example", "Sec-Fetch-Site": "cross-site"}
        results["hostile"] = client.post("/signin", headers=hostile).status_code
    except Exception as error:
        return error
    return results


@pytest.fixture
def results(make_app, tmp_path, monkeypatch, caplog):
    """Return a function that creates an app with the given hooks and probes it."""

    def results(before=factory.BEFORE_REQUEST, after=factory.AFTER_REQUEST):
        monkeypatch.setattr(factory, "BEFORE_REQUEST", before)
        monkeypatch.setattr(factory, "AFTER_REQUEST", after)
        database = f"sqlite:///{tmp_path / 'hooks.db'}"
        with caplog.at_level("INFO"):
            app = make_app(DATABASE_URL=database, PUBLIC_URL=URL)
            with app.app_context():
                db.create_all()
            return probe(app.test_client(), caplog)

    return results


def swapped(hooks, one, other):
    replacement = {one: other, other: one}
    return tuple(replacement.get(hook, hook) for hook in hooks)


def test_the_hooks_in_their_order_work(results):
    assert results() == {
        "conditional": (304, True),
        "logged": True,
        "listed": 304,
        "cached": True,
        "hostile": 400,
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (logs.start_request, hosts.refuse_other_hosts),
        (hosts.refuse_other_hosts, security.refuse_cross_site_writes),
    ],
)
def test_swapping_two_hooks_before_the_request_changes_a_response(results, one, other):
    assert results() != results(before=swapped(factory.BEFORE_REQUEST, one, other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (security.add_headers, response_cache.store_shared),
        (response_cache.store_shared, etags.make_conditional),
        (etags.make_conditional, logs.log_request),
    ],
)
def test_swapping_two_hooks_after_the_request_changes_a_response(results, one, other):
    assert results() != results(after=swapped(factory.AFTER_REQUEST, one, other))
