"""That nobody learns from a refused sign-in whether there is such a user."""

import json
from statistics import median
from time import perf_counter

import requests

from tests.live.clients import sign_in

TRIES = 500
COST = "scrypt:2048:8:1"


def test_an_unknown_user_and_a_wrong_password_are_answered_alike(serve, figure):
    """In status, headers, body and time."""
    url = serve(WEB_CONCURRENCY="1", POSTING_PASSWORD_HASH=COST).url
    sign_in(url, "somebody")
    times: dict[str, list[float]] = {"somebody": [], "nobody-at-all": []}
    shown = set()
    with requests.Session() as client:
        for _ in range(TRIES):
            for name, taken in times.items():
                body = {"username": name, "password": "not the password"}
                began = perf_counter()
                answer = client.post(f"{url}/signin", json=body, timeout=20)
                taken.append(perf_counter() - began)
                problem = answer.json() | {"request_id": "varies"}
                headers = dict(answer.headers) | {"X-Request-ID": "varies", "Date": "varies"}
                shown.add(json.dumps([answer.status_code, list(headers.items()), problem]))
    assert len(shown) == 1, shown
    known, unknown = (median(taken) * 1000 for taken in times.values())
    figure(f"medians of {TRIES}: {known:.2f} ms for a user, {unknown:.2f} ms for nobody")
    assert abs(known - unknown) < 0.05 * known
