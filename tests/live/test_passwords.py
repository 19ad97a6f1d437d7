"""One member who sends passwords cannot keep others from reading and signing in."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from statistics import median
from threading import Event

import pytest
import requests

from tests.live.clients import PASSWORD, clone, patiently, sign_in

CLIENTS = 32
SECONDS = 5
ELSEWHERE = {"X-Forwarded-For": "198.51.100.9"}
HASHED = {200, 401}  # 401 if another of the member's requests has changed the password meanwhile


def change_password(url, member):
    change = {"password": PASSWORD, "current_password": PASSWORD}
    return member.patch(f"{url}/users/me", json=change, timeout=60)


def sign_in_again(url, member):
    credentials = {"username": "eve", "password": PASSWORD}
    return member.post(f"{url}/signin", json=credentials, timeout=60)


@pytest.mark.parametrize("attack", [change_password, sign_in_again])
def test_others_read_and_sign_in_while_a_member_sends_passwords(serve, figure, attack):
    """No rate limit ends it. A machine may be slow, so waiting is counted in passwords."""
    cost = {"POSTING_PASSWORD_HASH": "scrypt:32768:8:3"}
    url = serve(WEB_CONCURRENCY="1", POSTING_PROXY_HOPS="1", **cost).url
    eve = sign_in(url, "eve")
    sign_in(url, "ada")
    is_over, statuses = Event(), Counter()
    waits = {"read": [], "sign-in": []}

    def attack_until_the_end():
        client = clone(eve)
        while not is_over.is_set():
            status = attack(url, client).status_code
            statuses[status] += 1
            if status == 503:
                time.sleep(0.1)  # else the attackers need more of the machine than the service

    def measure(kind, request):
        before, started = sum(statuses[status] for status in HASHED), time.monotonic()
        assert request().status_code == 200
        passwords = sum(statuses[status] for status in HASHED) - before
        waits[kind].append((passwords, time.monotonic() - started))

    with ThreadPoolExecutor(CLIENTS) as pool, requests.Session() as visitor:
        attackers = [pool.submit(attack_until_the_end) for _ in range(CLIENTS)]
        credentials = {"username": "ada", "password": PASSWORD}
        end = time.monotonic() + SECONDS
        try:
            time.sleep(1)
            for number in count(1):
                read = f"{url}/posts?limit={number}"  # which is not in the response cache
                measure("read", lambda read=read: visitor.get(read, timeout=60))
                if number % 10 == 0:
                    post = partial(visitor.post, f"{url}/signin", json=credentials, timeout=60)
                    measure("sign-in", patiently(partial(post, headers=ELSEWHERE)))
                    if time.monotonic() > end:
                        break
        finally:
            is_over.set()
        for attacker in attackers:
            attacker.result()
    for kind, measured in waits.items():
        passwords, seconds = zip(*measured, strict=True)
        figure(
            f"{attack.__name__}, {len(measured)} of kind {kind}: median {median(seconds):.3f} s, "
            f"longest {max(seconds):.2f} s, in which {max(passwords)} passwords were checked"
        )
    assert statuses.keys() <= HASHED | {503}
    assert max(passwords for passwords, _ in waits["read"]) <= 4
    # Usually it is four or less. With a queue for all, it would be that of all clients.
    assert max(passwords for passwords, _ in waits["sign-in"]) <= CLIENTS / 2
