"""The search indexes of a running service."""

import os
import random
import subprocess
import sys
from collections import Counter
from threading import Event
from time import monotonic, sleep

import pytest
import requests

from posting import create_app
from posting.db.base import db
from posting.db.engine import close_connections
from tests.helpers import ROOT
from tests.helpers.assertions import assert_indexed
from tests.live.clients import scaled, sign_in
from tests.live.load import Load, wait_until

SECONDS = 8  # in which others search
PHRASES = ["a a a b", "b a a a", "b b b a", "a b b b", "a a b b", "b b a a", "a a b a", "b a b b"]


@pytest.fixture
def flask(fresh_url):
    """Return a function that runs a `flask` command on the database of the service."""
    environment = os.environ | {"POSTING_DATABASE_URL": fresh_url}

    def flask(*arguments):
        command = [sys.executable, "-m", "flask", "--app", "posting", *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return flask


@pytest.fixture
def assert_all_indexed(fresh_url):
    """Return a function that asserts that the indexes of the service are right."""

    def assert_all_indexed():
        app = create_app({"DATABASE_URL": fresh_url})
        with app.app_context(), db.engine.connect() as connection:
            assert_indexed(connection)
        with app.app_context():
            close_connections()

    return assert_all_indexed


def test_readers_and_writers_continue_during_a_rebuild(serve, flask, assert_all_indexed, figure):
    """With rate limits, whose rows requests lock before those of posts."""
    limits = {"POSTING_RATE_LIMITS": "on", "POSTING_LIMIT_POSTS": "1000000/hour"}
    url = serve(WEB_CONCURRENCY="2", **limits).url
    flask("demo", "--posts", "2000", "--users", "5", "--comments", "0", "--images", "0")
    ada = sign_in(url, "ada")
    rebuilds = scaled(3, 20)
    with Load(url, ada, writers=4, readers=2) as load:
        load.wait_for_writes(10)
        for _ in range(rebuilds):
            assert "Indexed" in flask("search", "rebuild")
    figure(f"{len(load.acknowledged):,} posts during {rebuilds} rebuilds of the search index")
    assert load.failures == {}
    assert_all_indexed()
    for title in load.acknowledged[:: len(load.acknowledged) // 5]:
        [found] = ada.get(f"{url}/posts?q={title}", timeout=20).json()
        assert found["title"] == title


@pytest.mark.usefixtures("stays_consistent")
def test_comments_and_names_change_during_a_rebuild(serve, flask, assert_all_indexed, pool, figure):
    """Each member also deletes their account with all comments at last."""
    url = serve(WEB_CONCURRENCY="2").url
    flask("demo", "--posts", "50", "--users", "5", "--comments", "3000", "--images", "0")
    members = [sign_in(url, f"member-{number}") for number in range(4)]
    posts = [post["id"] for post in members[0].get(f"{url}/posts?limit=5").json()]
    is_over = Event()

    def write(member):
        statuses = Counter()

        def send(method, path, **body):
            response = member.request(method, url + path, json=body or None, timeout=30)
            statuses[response.status_code] += 1
            return response

        parent = None
        while not is_over.is_set():
            on = random.choice(posts) if parent is None else parent["post_id"]
            body = {"content": "Text", "parent_id": parent and parent["id"]}
            comment = send("POST", f"/posts/{on}/comments", **body).json()
            path = f"/comments/{comment['id']}"
            send("PATCH", path, content="Edited")
            send("PATCH", "/users/me", display_name=f"Name {random.random()}")
            parent = None if random.random() < 0.4 else comment
            if random.random() < 0.4:
                send("DELETE", path)
                parent = None
        send("DELETE", "/users/me?content=delete")
        return statuses

    running = [pool.submit(write, member) for member in members]
    for _ in range(scaled(2, 10)):
        assert "Indexed" in flask("search", "rebuild")
    is_over.set()
    assert "Indexed" in flask("search", "rebuild")
    statuses = sum((task.result() for task in running), Counter())
    figure(f"{statuses.total():,} writes during rebuilds of the indexes")
    assert statuses.keys() == {200, 201, 204}
    assert_all_indexed()


def test_clients_with_expensive_searches_leave_room_for_others(serve, figure, pool):
    """They search for phrases in monotonous posts: from one address, and then from sixteen."""
    url = serve(WEB_CONCURRENCY="1", POSTING_PROXY_HOPS="1").url
    ada = sign_in(url, "ada")
    content = "a b " * 24_990
    for number in range(scaled(150, 400)):
        body = {"title": f"Post {number}", "content": content}
        assert ada.post(f"{url}/posts", json=body, timeout=20).status_code == 201

    def search(address, words, session):
        headers = {"X-Forwarded-For": address}
        query = {"q": words, "limit": random.randint(1, 100)}  # not from the response cache
        return session.get(f"{url}/posts", params=query, headers=headers, timeout=30).status_code

    def attack(address):
        with requests.Session() as session:
            while not is_over.is_set():
                words = " ".join(f'"{phrase}"' for phrase in random.sample(PHRASES, 4))
                if search(address, words, session) == 200:
                    known.add(address)

    one, many = ["192.0.2.1"] * 16, [f"192.0.2.{number}" for number in range(16)]
    for addresses, least in ((one, 0.9), (many, 0.5)):
        is_over, known = Event(), set()
        attackers = [pool.submit(attack, address) for address in addresses]
        statuses = Counter()
        wait_until(lambda all={*addresses}, known=known: known == all)  # as slow clients
        with requests.Session() as session:
            end = monotonic() + SECONDS
            while monotonic() < end:
                statuses[search("198.51.100.1", f"post {random.random()}", session)] += 1
                sleep(0.1)
        is_over.set()
        for attacker in attackers:
            attacker.result()
        figure(f"searches beside 16 connections of {len({*addresses})} addresses: {dict(statuses)}")
        assert statuses[200] >= least * statuses.total()
