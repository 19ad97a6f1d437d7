"""Benchmarks of writing: new posts and comments, with limits on."""

from collections.abc import Iterator
from statistics import median

from bench import data, pocketbase
from bench.harness import NEW_POST, POSTS, Bench, Row, sign_up_and_in
from bench.servers import CORES, milliseconds

OURS, LIMIT, POCKETBASE = "Posting", "bare Flask", "PocketBase"
SYNCHRONOUS, MAXIMUM = "PocketBase with synchronous=FULL", "maximum"
POST, COMMENT = "POST /posts: 2 KB", "POST /posts/{id}/comments"
REACTION = "PUT /posts/{id}/reactions/{reaction}"
NEW_COMMENT = {"content": "A comment of the ordinary kind."}
LIMITS = {
    "POSTING_RATE_LIMITS": "on",
    "POSTING_LIMIT_POSTS": "1000000/hour",
    "POSTING_LIMIT_COMMENTS": "1000000/hour",
}
# Workers, clients, and the milliseconds that 99 of 100 writes may take.
SLOWEST = ((1, 8, 70), (4, 16, 200))


def on_sqlite(bench: Bench) -> Iterator[Row]:
    """Compare with a view that inserts one row, and with PocketBase."""
    ours = bench.posting(bench.sqlite_url, **LIMITS)
    bare = bench.bare(b"{}")
    posts, comments = _contenders(bench, ours, f"{bare}/rows")
    with_pocketbase = posts | {
        POCKETBASE: _pocketbase(bench, bench.pocketbase),
        SYNCHRONOUS: _pocketbase(bench, _synchronous_pocketbase(bench, CORES[:1])),
    }
    targets = {(OURS, LIMIT): 0.60, (OURS, SYNCHRONOUS): 0.80}
    yield Row(POST, bench.compare(with_pocketbase), targets)
    yield Row(COMMENT, bench.compare(comments), {(OURS, LIMIT): 0.65})
    contenders = {REACTION: _reactions(bench, ours), COMMENT: comments[OURS]}
    yield Row(
        f"{REACTION}, another one each time", bench.compare(contenders), {(REACTION, COMMENT): 1.5}
    )
    for name, contenders in ((POST, posts), (COMMENT, comments)):
        rates = bench.compare(contenders, connections=1)
        yield Row(f"{name}, one client", rates, {(OURS, LIMIT): 0.40})
    on_all_cores = bench.posting(bench.sqlite_url, CORES, **LIMITS)
    posts, _ = _contenders(bench, on_all_cores, bare)
    contenders = {
        OURS: posts[OURS],
        SYNCHRONOUS: _pocketbase(bench, _synchronous_pocketbase(bench, CORES)),
    }
    yield Row(f"{POST}, on all cores", bench.compare(contenders), {(OURS, SYNCHRONOUS): 0.80})


def slowest(bench: Bench) -> Iterator[Row]:
    """Measure the slowest of a hundred writes."""
    for workers, clients, maximum in SLOWEST:
        concurrency = {"WEB_CONCURRENCY": str(workers)}
        url = bench.posting(bench.sqlite_url, CORES, **LIMITS, **concurrency)
        posts, _ = _contenders(bench, url, "")
        url, *options = posts[OURS]
        values = [
            milliseconds(url, bench.seconds, *options, percentile=99, connections=clients)
            for _ in range(bench.rounds)
        ]
        name = f"{POST}, slowest of a hundred, workers: {workers}, clients: {clients}"
        yield Row(name, {MAXIMUM: maximum, OURS: median(values)}, {(MAXIMUM, OURS): 1}, "ms")


def on_postgres(bench: Bench) -> Iterator[Row]:
    """Compare with a view that inserts one row."""
    ours = bench.posting(bench.postgres_url, **LIMITS)
    bare = bench.bare(b"{}", database=bench.postgres_url)
    posts, comments = _contenders(bench, ours, f"{bare}/postgres/rows")
    yield Row(f"{POST}, on Postgres", bench.compare(posts), {(OURS, LIMIT): 0.25})
    yield Row(f"{COMMENT}, on Postgres", bench.compare(comments), {(OURS, LIMIT): 0.25})


def _contenders(bench: Bench, ours: str, bare: str) -> Iterator[dict[str, tuple[str, ...]]]:
    """Yield the contenders of new posts, and of new comments."""
    cookie = {"Cookie": sign_up_and_in(ours, f"somebody-{ours.rpartition(':')[2]}")}
    for path, body in (("", NEW_POST), (f"/{data.post_id(3)}/comments", NEW_COMMENT)):
        row = {"title": "", **body}
        yield {
            OURS: (f"{ours}/posts{path}", *bench.wrk_options(body, cookie)),
            LIMIT: (bare, *bench.wrk_options(row)),
        }


def _reactions(bench: Bench, url: str) -> tuple[str, ...]:
    cookie = {"Cookie": sign_up_and_in(url, "reacting")}
    first, second = (f"/posts/{data.post_id(3)}/reactions/{name}" for name in ("heart", "laugh"))
    return (url, *bench.wrk_alternation(first, second, cookie))


def _pocketbase(bench: Bench, url: str) -> tuple[str, ...]:
    token = {"Authorization": pocketbase.sign_in(url)}
    return (url + pocketbase.CREATE, *bench.wrk_options(NEW_POST, token))


def _synchronous_pocketbase(bench: Bench, cores: list[int]) -> str:
    folder = bench.folder / f"pocketbase-{len(cores)}"
    pocketbase.create(folder, POSTS)
    server = pocketbase.serve(folder, pocketbase.SYNCHRONOUS, cores)
    return bench.stack.enter_context(server)
