"""Benchmarks of memory and start-up time."""

import json
import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from time import perf_counter

from bench.harness import NEW_POST, POSTS, SETTINGS, Bench, Row, sign_up_and_in
from bench.servers import CORES, ROOT, gunicorn, mebibytes_of_worker, wrk

LIMIT = "maximum"
MAX_MEBIBYTES = {"SQLite": 80, "Postgres": 90}
MAX_SECONDS_TO_START, MAX_SECONDS_TO_IMPORT, MAX_SECONDS_OF_HELP = 1.5, 0.5, 0.6
EARLY, LATE = 10_000, 100_000
MAX_SECONDS = 300
STARTS, IMPORTS = 5, 7
HELP = "flask --help"
IMPORT = """
from time import perf_counter
started = perf_counter()
from posting import create_app
print(perf_counter() - started)
"""
# One list to five different single posts and four different pages, which fill the response cache
# within some 1,100 requests, and from time to time 50 new posts, which empty it.
MIX = """
local sent, answered = {first}, {first}
local json = {{ ["Content-Type"] = "application/json", ["Cookie"] = "{cookie}" }}
function request()
    sent = sent + 1
    if sent % 7500 < 50 then
        return wrk.format("POST", "/posts", json, '{body}')
    elseif sent % 10 == 0 then
        return wrk.format("GET", "/posts")
    end
    local kind = sent % 10 < 6 and "posts" or "p"
    return wrk.format("GET", string.format("/%s/post-%016d", kind, 1 + sent % {posts}))
end
function response(status)
    answered = answered + 1
    if status >= 300 then
        os.exit(1)
    elseif answered == {last} then
        os.exit(0)
    end
end
"""


def memory(bench: Bench) -> Iterator[Row]:
    for engine, database in {"SQLite": bench.sqlite_url, "Postgres": bench.postgres_url}.items():
        settings = SETTINGS | {"POSTING_DATABASE_URL": database, "MAX_REQUESTS": "0"}
        values: dict[str, float] = {LIMIT: MAX_MEBIBYTES[engine]}
        with gunicorn("wsgi:app", "/readyz", **settings) as (url, master):
            cookie = sign_up_and_in(url, "writer")
            for first, last in ((0, EARLY), (EARLY, LATE)):
                _send_mix(bench, url, cookie, first, last)
                values[f"after {last:,} requests"] = mebibytes_of_worker(master)
        _, early, late = values
        targets = {(LIMIT, late): 1, (early, late): 0.95}
        yield Row(f"memory of a worker, {engine}", values, targets, "MiB")


def starting(bench: Bench) -> Iterator[Row]:
    posts = f"{POSTS:,} posts"
    seconds = median(_seconds_to_start(bench) for _ in range(STARTS))
    yield Row(
        "start of gunicorn until /healthz answers",
        {LIMIT: MAX_SECONDS_TO_START, posts: seconds},
        {(LIMIT, posts): 1},
        "s",
    )
    imported = "from posting import create_app"
    seconds = median(_seconds_to_import() for _ in range(IMPORTS))
    yield Row(
        "import in a new process",
        {LIMIT: MAX_SECONDS_TO_IMPORT, imported: seconds},
        {(LIMIT, imported): 1},
        "s",
    )
    seconds = median(_seconds_of_help() for _ in range(IMPORTS))
    yield Row(
        "the list of commands", {LIMIT: MAX_SECONDS_OF_HELP, HELP: seconds}, {(LIMIT, HELP): 1}, "s"
    )


def _seconds_of_help() -> float:
    started = perf_counter()
    subprocess.run([sys.executable, "-m", *HELP.split()], cwd=ROOT, check=True, capture_output=True)
    return perf_counter() - started


def _send_mix(bench: Bench, url: str, cookie: str, first: int, last: int) -> None:
    """Send the requests `first` to `last` of the mix."""
    body = json.dumps(NEW_POST)
    script = bench.folder / "mix.lua"
    script.write_text(MIX.format(first=first, last=last, cookie=cookie, body=body, posts=POSTS))
    report = wrk(url, MAX_SECONDS, "-s", str(script))
    assert "requests in" not in report, report  # otherwise it ran out of time


def _seconds_to_start(bench: Bench) -> float:
    settings = SETTINGS | {"POSTING_DATABASE_URL": bench.sqlite_url}
    started = perf_counter()
    with gunicorn("wsgi:app", "/healthz", CORES, **settings):
        return perf_counter() - started


def _seconds_to_import() -> float:
    command = [sys.executable, "-c", IMPORT]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return float(run.stdout)
