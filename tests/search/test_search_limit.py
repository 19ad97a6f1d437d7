"""A worker runs two searches at a time, and one of each client."""

from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from threading import Event, Semaphore
from time import monotonic, sleep

import pytest

from posting.db.commits import CommitWatch
from posting.search import results, turns
from posting.search.index import Index
from posting.search.turns import Recent, SearchBusy, Turns

FIRST, SECOND, THIRD = ({"REMOTE_ADDR": f"192.0.2.{number}"} for number in (1, 2, 3))
PATHS = ["/posts?q=x", "/comments?q=x", "/search?q=x", "/search?q=x&show=comments"]


@pytest.fixture(autouse=True)
def own_turns(monkeypatch):
    """Turns of this test alone, and no cache."""
    monkeypatch.setattr(CommitWatch, "version", lambda _: None)
    monkeypatch.setattr(results, "_turns", Turns())


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(turns, "MAX_WAIT_SECONDS", 0.01)


@pytest.fixture
def patient(monkeypatch):
    monkeypatch.setattr(turns, "MAX_WAIT_SECONDS", 20)


class Searches:
    """Searches that run until the test ends them."""

    def __init__(self, app, pool):
        self.app, self.pool = app, pool
        self.started, self.end = Semaphore(0), Event()

    def find(self, *_):
        self.started.release()
        assert self.end.wait(20)
        return []

    def send(self, address, path="/posts?q=x", **headers):
        """Send a search in a thread of its own, and return its response in the future."""
        client = self.app.test_client()
        return self.pool.submit(client.get, path, environ_overrides=address, headers=headers)

    def start(self, address, **headers):
        """Send a search, and wait until it runs."""
        response = self.send(address, **headers)
        assert self.started.acquire(timeout=20)
        return response


@pytest.fixture
def searches(app, monkeypatch):
    with ThreadPoolExecutor() as pool:
        searches = Searches(app, pool)
        monkeypatch.setattr(Index, "find", searches.find)
        yield searches
        searches.end.set()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("path", PATHS)
def test_a_third_search_gets_503(anonymous, searches, path):
    running = [searches.start(address) for address in (FIRST, SECOND)]
    response = anonymous.get(path, environ_overrides=THIRD)
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "2"
    words = "does not answer" if path.startswith("/search") else "Too many searches"
    assert words in response.text
    for other in ("/posts", "/comments", "/", "/search", "/posts?q=-", "/users?q=x"):
        assert anonymous.get(other, environ_overrides=THIRD).status_code == 200
    searches.end.set()
    assert [response.result().status_code for response in running] == [200] * 2
    assert anonymous.get(path, environ_overrides=THIRD).status_code == 200


@pytest.mark.usefixtures("patient")
def test_a_third_search_waits_for_the_end_of_another(searches):
    running = [searches.start(address) for address in (FIRST, SECOND)]
    running.append(searches.send(THIRD))
    assert not searches.started.acquire(timeout=0.1)
    searches.end.set()
    assert [response.result().status_code for response in running] == [200] * 3


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("path", PATHS)
def test_a_second_search_of_a_client_gets_503(searches, path):
    running = searches.start(FIRST)
    assert searches.send(FIRST, path).result().status_code == 503
    others = searches.start(SECOND)
    searches.end.set()
    assert running.result().status_code == others.result().status_code == 200


@pytest.mark.usefixtures("impatient")
def test_a_client_is_the_user_of_a_token(alice, bob, searches):
    def token(member):
        body = {"name": "t", "scope": "read"}
        return {"Authorization": f"Bearer {member.post('/tokens', json=body).json['token']}"}

    of_alice, of_bob = token(alice), token(bob)
    running = [searches.start(FIRST, **of_alice)]
    assert searches.send(SECOND, **of_alice).result().status_code == 503
    running.append(searches.start(FIRST, **of_bob))
    searches.end.set()
    assert [response.result().status_code for response in running] == [200] * 2


@pytest.mark.usefixtures("patient")
def test_searches_of_one_client_run_one_after_the_other(searches):
    running = [searches.start(FIRST)]
    running += [searches.send(FIRST) for _ in range(4)]
    assert not searches.started.acquire(timeout=0.1)
    searches.end.set()
    assert [response.result().status_code for response in running] == [200] * 5


@pytest.fixture
def slow(searches, monkeypatch):
    """Sixteen clients whose last search was slow."""
    addresses = [{"REMOTE_ADDR": f"198.51.100.{number}"} for number in range(16)]
    searches.end.set()
    with monkeypatch.context() as every_search_is_slow:
        every_search_is_slow.setattr(turns, "SLOW_SECONDS", -1)
        for address in addresses:
            assert searches.start(address).result().status_code == 200
    searches.end.clear()
    return addresses


@pytest.mark.usefixtures("impatient")
def test_slow_clients_share_a_place(searches, slow):
    running = [searches.start(slow[0])]
    refused = [searches.send(address) for address in slow[1:]]
    assert {response.result().status_code for response in refused} == {503}
    running.append(searches.start(FIRST))
    searches.end.set()
    assert [response.result().status_code for response in running] == [200] * 2


@pytest.mark.usefixtures("patient")
def test_one_request_of_a_slow_client_waits(searches, slow):
    running = searches.start(slow[0])
    others = [searches.send(slow[1]) for _ in range(3)]
    refused = [*islice(as_completed(others, timeout=20), 2)]
    assert [response.result().status_code for response in refused] == [503] * 2
    searches.end.set()
    [waiting] = {*others} - {*refused}
    assert running.result().status_code == waiting.result().status_code == 200


@pytest.mark.usefixtures("patient")
def test_the_requests_of_a_client_that_wait_have_half_of_the_threads(searches, monkeypatch):
    """So that others find a thread, even before the first search of a client is known as slow."""
    monkeypatch.setattr(turns, "worker_threads", lambda: 4)
    running = searches.start(FIRST)
    others = [searches.send(FIRST) for _ in range(6)]
    refused = [*islice(as_completed(others, timeout=20), 4)]
    assert [response.result().status_code for response in refused] == [503] * 4
    searches.end.set()
    waiting = {*others} - {*refused}
    assert [response.result().status_code for response in (running, *waiting)] == [200] * 3


@pytest.mark.usefixtures("patient")
def test_the_client_that_has_searched_least_is_next():
    of_worker, running, ends = Turns(), [], {}

    def search(client):
        with of_worker.take(client):
            running.append(client)
            assert ends[client].wait(20)

    def wait_until(condition):
        end = monotonic() + 20
        while not condition():
            assert monotonic() < end
            sleep(0.01)

    with ThreadPoolExecutor() as pool:

        def start(client):
            ends[client] = Event()
            return pool.submit(search, client)

        search_before = start("often")
        wait_until(lambda: running)
        ends["often"].set()
        search_before.result()
        searches = [start("first"), start("second")]
        wait_until(lambda: len(running) == 3)
        for number, client in enumerate(["often", "new"], start=1):
            searches.append(start(client))
            wait_until(lambda number=number: of_worker._waiting.total() == number)
        ends["first"].set()
        wait_until(lambda: len(running) == 4)
        assert running[-1] == "new"
        for end in ends.values():
            end.set()
        for each in searches:
            each.result()


@pytest.mark.usefixtures("patient")
def test_a_slow_client_that_has_searched_less_waits_too():
    of_worker, end = Turns(), Event()
    for seconds, client in enumerate(["running", "less", "more", "most"]):
        of_worker._recent[client] = Recent(monotonic(), seconds, is_slow=True)

    def search(client):
        with of_worker.take(client):
            assert end.wait(20)

    with ThreadPoolExecutor() as pool:
        searches = [pool.submit(search, "running")]
        while not of_worker._running:
            sleep(0.01)
        for number, client in enumerate(["more", "less"], start=1):
            searches.append(pool.submit(search, client))
            while of_worker._waiting.total() < number and not searches[-1].done():
                sleep(0.01)
        with pytest.raises(SearchBusy):
            search("most")
        end.set()
        for each in searches:
            each.result()


@pytest.mark.usefixtures("impatient")
def test_a_client_is_no_longer_slow_after_a_quick_search(searches, slow):
    searches.end.set()
    assert searches.send(slow[0]).result().status_code == 200
    searches.end.clear()
    assert searches.started.acquire(timeout=20)
    running = [searches.start(address) for address in slow[:2]]
    searches.end.set()
    assert [response.result().status_code for response in running] == [200] * 2


@pytest.mark.parametrize(
    ("searches", "is_slow"),
    [
        ([1], True),
        ([0.01, 1], False),
        ([0.01] * 50 + [1], False),
        ([0.01] * 50 + [1, 1], True),
        ([0.01, 1] * 5, True),
        ([1] * 50 + [0.01], False),
    ],
)
def test_a_client_is_slow_after_slow_searches_but_not_after_one_among_quick_ones(searches, is_slow):
    client = Recent(0)
    for seconds in searches:
        client.add(seconds)
    assert client.is_slow == is_slow


@pytest.mark.usefixtures("impatient")
def test_a_search_that_fails_does_not_count(anonymous, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    with monkeypatch.context() as failing:
        failing.setattr(Index, "find", fail)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                anonymous.get("/posts?q=x")
    assert anonymous.get("/posts?q=x").status_code == 200
