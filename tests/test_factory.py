"""The order of hooks: exchanging two that depend on it breaks a response."""

import pytest

from posting import factory
from posting.db import engine
from posting.http import access_log, csrf, etags, headers, proxy, response_cache

URL = "https://posting.example"


def probe(client, caplog):
    """Return the observable results of a few requests, or the error that they raise."""
    found = {}
    try:
        first = client.get("/healthz", headers={"If-None-Match": "*"})
        found["conditional"] = first.status_code, "ETag" in first.headers
        found["logged"] = "status=304" in caplog.messages[-1]
        listed = client.get("/posts", headers={"If-None-Match": "*"})
        found["listed"] = listed.status_code
        cache = client.application.extensions[response_cache.EXTENSION]
        found["kept"] = "/posts" in str(vars(cache))
        hostile = {"Host": "other.example", "Sec-Fetch-Site": "cross-site"}
        found["hostile"] = client.post("/signin", headers=hostile).status_code
    except Exception as error:
        return error
    return found


@pytest.fixture
def results(make_app, tmp_path, monkeypatch, caplog):
    """Return a function that probes an app with given hooks."""

    def results(before=factory.BEFORE_REQUEST, after=factory.AFTER_REQUEST):
        monkeypatch.setattr(factory, "BEFORE_REQUEST", before)
        monkeypatch.setattr(factory, "AFTER_REQUEST", after)
        database = f"sqlite:///{tmp_path / 'hooks.db'}"
        with caplog.at_level("INFO"):
            app = make_app(DATABASE_URL=database, PUBLIC_URL=URL)
            with app.app_context():
                engine.db.create_all()
            return probe(app.test_client(), caplog)

    return results


def exchanged(hooks, one, other):
    swap = {one: other, other: one}
    return tuple(swap.get(hook, hook) for hook in hooks)


def test_hooks_in_their_order(results):
    assert results() == {
        "conditional": (304, True),
        "logged": True,
        "listed": 304,
        "kept": True,
        "hostile": 400,
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (headers.assign_request_id, proxy.refuse_other_hosts),
        (proxy.refuse_other_hosts, csrf.refuse_cross_site_writes),
    ],
)
def test_the_order_of_checks_matters(results, one, other):
    assert results() != results(before=exchanged(factory.BEFORE_REQUEST, one, other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (headers.add_headers, response_cache.store),
        (response_cache.store, etags.make_conditional),
        (etags.make_conditional, access_log.record),
    ],
)
def test_the_order_of_finishing_matters(results, one, other):
    assert results() != results(after=exchanged(factory.AFTER_REQUEST, one, other))
