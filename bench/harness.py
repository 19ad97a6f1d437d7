"""Run servers on the same data and compare their request rates."""

import json
import os
import secrets
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import psycopg

from bench import data, pocketbase
from bench.servers import CONNECTIONS, NO_VERIFICATION, SERVER_CORE, gunicorn, per_second

POSTS = 100_000
POSTGRES = os.environ.get("BENCH_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
SETTINGS = {"POSTING_RATE_LIMITS": "off"}
NEW_POST = {"title": "A title of the ordinary kind", "content": data.LINE * data.LINES}
NO_HEADERS: Mapping[str, str] = {}
SEND = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
{headers}
wrk.body = '{body}'
"""
# Two paths in turns, without a body.
ALTERNATE = """
{headers}
local paths, number = {{"{first}", "{second}"}}, 0
request = function()
  number = number + 1
  return wrk.format("PUT", paths[number % 2 + 1])
end
"""


@dataclass
class Row:
    """A benchmark: the value of each contender, and the minimum ratio of pairs of them."""

    name: str
    values: dict[str, float]
    targets: dict[tuple[str, str], float]
    unit: str = "per second"


class Servers:
    """Starts servers, and compares them in rounds."""

    def __init__(self, folder: Path, stack: ExitStack, seconds: int, rounds: int) -> None:
        self.folder, self.stack = folder, stack
        self.seconds, self.rounds = seconds, rounds

    def posting(self, database: str, cores: Sequence[int] = (SERVER_CORE,), **settings: str) -> str:
        """Start Posting on a database; return its URL."""
        environment = SETTINGS | {"POSTING_DATABASE_URL": database} | settings
        return self.stack.enter_context(gunicorn("wsgi:app", "/readyz", cores, **environment))[0]

    def bare(self, body: bytes, password_hash: str = "", database: str = "") -> str:
        """Start a minimal Flask app with this response body and hash; return its URL."""
        file = self.folder / f"body-{len(body)}"
        file.write_bytes(body)
        environment = {
            "BODY": str(file),
            "DATABASE": database or str(self.folder / "bare.db"),
            "PASSWORD_HASH": password_hash,
        }
        return self.stack.enter_context(gunicorn("bench.bare:app", "/bytes", **environment))[0]

    def compare(
        self,
        contenders: dict[str, tuple[str, ...]],
        seconds: int | None = None,
        connections: int = CONNECTIONS,
    ) -> dict[str, float]:
        """Return the median rate of each contender, given as a URL and options of wrk."""
        rates: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(self.rounds):
            for name, (url, *options) in contenders.items():
                rate = per_second(url, seconds or self.seconds, *options, connections=connections)
                rates[name].append(rate)
        return {name: statistics.median(values) for name, values in rates.items()}

    def compare_sizes(self, name: str, contenders: Mapping[int, tuple[str, ...]]) -> Row:
        """Return a row that compares two numbers of posts, the smaller one first."""
        labels = {posts: f"{posts:,} posts" for posts in contenders}
        rates = self.compare({labels[posts]: options for posts, options in contenders.items()})
        few, many = labels.values()
        return Row(name, rates, {(many, few): 0.80})

    def wrk_options(
        self, body: dict[str, str], headers: Mapping[str, str] = NO_HEADERS
    ) -> tuple[str, ...]:
        """Return the options that make wrk send a POST request with this body."""
        return self._script(SEND, headers, body=json.dumps(body))

    def wrk_alternation(
        self, first: str, second: str, headers: Mapping[str, str]
    ) -> tuple[str, ...]:
        """Return the options that make wrk send PUT requests to two paths in turns."""
        return self._script(ALTERNATE, headers, first=first, second=second)

    def _script(self, text: str, headers: Mapping[str, str], **values: str) -> tuple[str, ...]:
        script = self.folder / f"send-{secrets.token_hex(8)}.lua"
        lines = (f'wrk.headers["{name}"] = "{value}"' for name, value in headers.items())
        script.write_text(text.format(headers="\n".join(lines), **values))
        return "-s", str(script)


class Bench(Servers):
    """The servers that most benchmarks compare, all on the same data."""

    def __init__(self, folder: Path, stack: ExitStack, seconds: int, rounds: int) -> None:
        super().__init__(folder, stack, seconds, rounds)
        self.sqlite_url = f"sqlite:///{folder / 'posting.db'}"
        self.postgres_url = stack.enter_context(temporary_postgres())
        for url in (self.sqlite_url, self.postgres_url):
            data.create(url, POSTS)
        pocketbase.create(folder / "pocketbase", POSTS)
        self.cached = self.posting(self.sqlite_url)
        self.uncached = self.posting(self.sqlite_url, POSTING_RESPONSE_CACHE="off")
        self.postgres = self.posting(self.postgres_url)
        self.uncached_postgres = self.posting(self.postgres_url, POSTING_RESPONSE_CACHE="off")
        self.pocketbase = stack.enter_context(pocketbase.serve(folder / "pocketbase"))


def get_body(url: str) -> bytes:
    with urlopen(url, context=NO_VERIFICATION) as response:
        body: bytes = response.read()
    return body


def post(url: str, body: dict[str, str], cookie: str = "") -> str:
    """Send a POST request; return the cookie that it sets, if any."""
    headers = {"Content-Type": "application/json", "Cookie": cookie}
    with urlopen(Request(url, json.dumps(body).encode(), headers)) as response:
        return str(response.headers.get("Set-Cookie", "")).partition(";")[0]


def sign_up_and_in(url: str, username: str) -> str:
    """Create an account; return the cookie of a session."""
    credentials = {"username": username, "password": data.PASSWORD}
    post(f"{url}/signup", credentials)
    return post(f"{url}/signin", credentials)


def create_token(url: str, cookie: str) -> str:
    """Return a new token of the user of a session, which may read."""
    body = json.dumps({"name": "Benchmark", "scope": "read"}).encode()
    headers = {"Content-Type": "application/json", "Cookie": cookie}
    with urlopen(Request(f"{url}/tokens", body, headers)) as response:
        return str(json.load(response)["token"])


@contextmanager
def temporary_postgres() -> Iterator[str]:
    """Yield the URL of a temporary database on the server at BENCH_POSTGRES."""
    name = f"posting_bench_{secrets.token_hex(8)}"
    with psycopg.connect(POSTGRES, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield POSTGRES.rpartition("/")[0] + f"/{name}"
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")
