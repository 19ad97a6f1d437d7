"""A failed guess does not reveal whether the user exists."""

import json
import random
from functools import partial
from statistics import median
from time import perf_counter

import pytest
import requests

from tests.live.clients import PASSWORD, patiently, sign_in

ATTEMPTS = 500
COST = "scrypt:2048:8:1"
WRONG_CODE = "7G3K-9QWE-2M4X-V8ZA"


@pytest.mark.parametrize(
    ("path", "guess"),
    [
        ("/signin", {"password": "not the password"}),
        ("/password-resets", {"recovery_code": WRONG_CODE, "password": "another long walk"}),
    ],
    ids=["password", "recovery code"],
)
def test_an_unknown_user_and_a_wrong_guess_give_the_same_response(serve, figure, path, guess):
    """The same status, headers, body and time."""
    url = serve(WEB_CONCURRENCY="1", POSTING_PASSWORD_HASH=COST).url
    somebody = sign_in(url, "somebody")
    password = {"current_password": PASSWORD}
    assert somebody.post(f"{url}/recovery-codes", json=password, timeout=20).status_code == 201
    times: dict[str, list[float]] = {"somebody": [], "unknown": []}
    responses = set()
    with requests.Session() as client:
        for _ in range(ATTEMPTS):
            for name, seconds in random.sample(list(times.items()), 2):
                body = guess | {"username": name}
                started = perf_counter()
                response = client.post(url + path, json=body, timeout=20)
                seconds.append(perf_counter() - started)
                problem = response.json() | {"request_id": "varies"}
                headers = dict(response.headers) | {"X-Request-ID": "varies", "Date": "varies"}
                responses.add(json.dumps([response.status_code, list(headers.items()), problem]))
    assert len(responses) == 1, responses
    known, unknown = (median(seconds) * 1000 for seconds in times.values())
    figure(f"medians of {ATTEMPTS}: {known:.2f} ms for a user, {unknown:.2f} ms for an unknown one")
    # Pairs, since the speed of a machine with other work varies from one pair to the next.
    differences = [1000 * (one - other) for one, other in zip(*times.values(), strict=True)]
    is_small = abs(median(differences)) < 0.05 * known
    # On a busy machine, even the median is large by chance, but then it is not one-sided: without
    # a difference, a user is slower in half of the pairs, plus or minus four standard deviations.
    user_is_slower = sum(difference > 0 for difference in differences)
    is_one_sided = abs(user_is_slower - ATTEMPTS / 2) > 4 * ATTEMPTS**0.5 / 2
    assert is_small or not is_one_sided


def test_concurrent_sign_ins_of_one_address_do_not_deadlock(serve, pool):
    """They lock the windows of the address and of the account, in one order."""
    names = ("SIGNIN", "PASSWORDS", "SIGNUP")
    limits = {f"POSTING_LIMIT_{name}": "1000/hour" for name in names}
    limits["POSTING_RATE_LIMITS"] = "on"
    url = serve(WEB_CONCURRENCY="2", **limits).url
    names = [f"user-{number}" for number in range(8)]
    for name in names:
        sign_in(url, name).close()

    def sign_in_often(name):
        with requests.Session() as client:
            body = {"username": name, "password": PASSWORD}
            send = patiently(partial(client.post, f"{url}/signin", json=body, timeout=20))
            return {send().status_code for _ in range(5)}

    assert list(pool.map(sign_in_often, names * 2)) == [{200}] * 16
    body = {"username": names[0], "password": "not the password"}
    response = requests.post(f"{url}/signin", json=body, timeout=20)
    assert response.headers["RateLimit"].startswith('"signin-address";r=4999;')
    assert '"signin";r=999;' in response.headers["RateLimit"]
