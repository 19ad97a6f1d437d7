"""A worker runs two searches at a time."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore

import pytest

from posting.db.commits import CommitWatch
from posting.search import results as search
from posting.search.index import Index


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setattr(CommitWatch, "version", lambda _: None)


class Searches:
    """Searches that run until the test ends them."""

    def __init__(self):
        self.started, self.end = Semaphore(0), Event()

    def find(self, *_):
        self.started.release()
        assert self.end.wait(20)
        return []


@pytest.fixture
def slow(app, monkeypatch):
    """Two searches that go on."""
    searches = Searches()
    monkeypatch.setattr(Index, "find", searches.find)
    with ThreadPoolExecutor() as pool:
        responses = [pool.submit(app.test_client().get, "/posts?q=x") for _ in range(2)]
        for _ in responses:
            assert searches.started.acquire(timeout=20)
        yield searches
        searches.end.set()
        assert [response.result().status_code for response in responses] == [200] * 2


@pytest.mark.parametrize(
    "path", ["/posts?q=x", "/comments?q=x", "/search?q=x", "/search?q=x&show=comments"]
)
def test_a_third_search_gets_503(anonymous, slow, monkeypatch, path):
    monkeypatch.setattr(search, "MAX_WAIT_SECONDS", 0.01)
    response = anonymous.get(path)
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "2"
    assert "Too many searches" in response.text
    others = "/posts", "/comments", "/", "/search", "/posts?q=-", "/users?q=x"
    for path_of_others in others:
        assert anonymous.get(path_of_others).status_code == 200
    monkeypatch.setattr(search, "MAX_WAIT_SECONDS", 20)
    slow.end.set()
    assert anonymous.get(path).status_code == 200


def test_a_third_search_waits_for_the_end_of_another(app, slow, monkeypatch):
    monkeypatch.setattr(search, "MAX_WAIT_SECONDS", 20)
    with ThreadPoolExecutor() as pool:
        third = pool.submit(app.test_client().get, "/posts?q=x")
        assert not slow.started.acquire(timeout=0.1)
        slow.end.set()
        assert third.result().status_code == 200


def test_a_search_that_fails_does_not_count(anonymous, monkeypatch):
    monkeypatch.setattr(search, "MAX_WAIT_SECONDS", 0.01)

    def fail(*_):
        raise ZeroDivisionError

    with monkeypatch.context() as failing:
        failing.setattr(Index, "find", fail)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                anonymous.get("/posts?q=x")
    assert anonymous.get("/posts?q=x").status_code == 200
