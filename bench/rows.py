"""Benchmarks of reading and scaling."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from threading import Event
from urllib.request import urlopen

from bench import data, nginx, pocketbase
from bench.harness import NEW_POST, POSTS, Bench, Row, create_token, get_body, post, sign_up_and_in
from bench.servers import per_second

OURS, UNCACHED, ON_POSTGRES = "Posting", "Posting without cache", "Posting on Postgres"
UNCACHED_ON_POSTGRES = "Posting on Postgres without cache"
LIMIT, POCKETBASE = "bare Flask", "PocketBase"
BEHIND_NGINX, STATIC = "Posting behind nginx", "static file"
FEW, MANY = 1000, 1_000_000
PAGE = 5000
COMMENTS = 50
WRITES = 10  # per second
QUIET, BUSY = "without writes", f"with {WRITES} new posts a second"
EVERYONE, BY_SESSION, BY_TOKEN = "by everyone", "by a member's session", "by a member's token"


def reading(bench: Bench) -> Iterator[Row]:
    listed = bench.bare(get_body(f"{bench.cached}/posts"))
    yield Row(
        "GET /posts: 20 of 100,000, with authors",
        bench.compare(
            {
                OURS: (f"{bench.cached}/posts",),
                UNCACHED: (f"{bench.uncached}/posts",),
                ON_POSTGRES: (f"{bench.postgres}/posts",),
                UNCACHED_ON_POSTGRES: (f"{bench.uncached_postgres}/posts",),
                LIMIT: (f"{listed}/bytes",),
                POCKETBASE: (bench.pocketbase + pocketbase.LIST,),
            }
        ),
        {
            (OURS, LIMIT): 0.80,
            (OURS, POCKETBASE): 4,
            (UNCACHED, LIMIT): 0.40,
            (UNCACHED, POCKETBASE): 1.8,
            (ON_POSTGRES, LIMIT): 0.50,
        },
    )
    path = f"/posts/{data.post_id(POSTS // 2)}"
    single = bench.bare(get_body(bench.cached + path))
    yield Row(
        "GET /posts/{id}: 2 KB",
        bench.compare(
            {
                OURS: (bench.cached + path,),
                UNCACHED: (bench.uncached + path,),
                LIMIT: (f"{single}/bytes",),
                POCKETBASE: (bench.pocketbase + pocketbase.post_url(POSTS // 2),),
            }
        ),
        {(OURS, LIMIT): 0.75, (UNCACHED, LIMIT): 0.45},
    )
    with urlopen(bench.cached + path) as response:
        if_none_match = ("-H", f"If-None-Match: {response.headers['ETag']}")
    yield Row(
        "GET /posts/{id}: 304 Not Modified",
        bench.compare(
            {OURS: (bench.cached + path, *if_none_match), LIMIT: (f"{single}/unchanged",)}
        ),
        {(OURS, LIMIT): 0.75},
    )
    path = f"/posts/{data.post_id(1)}/comments"
    comments = bench.bare(get_body(bench.cached + path))
    yield Row(
        "GET /posts/{id}/comments: 50 of 10,000",
        bench.compare(
            {
                OURS: (bench.cached + path,),
                UNCACHED: (bench.uncached + path,),
                LIMIT: (f"{comments}/bytes",),
            }
        ),
        {(OURS, LIMIT): 0.70},
    )


def reading_by_members(bench: Bench) -> Iterator[Row]:
    """Compare the cached list with the same list where only members may read."""
    members_only = bench.posting(bench.sqlite_url, POSTING_READING="members")
    cookie = sign_up_and_in(members_only, "reader")
    token = create_token(members_only, cookie)
    rates = bench.compare(
        {
            EVERYONE: (f"{bench.cached}/posts",),
            BY_SESSION: (f"{members_only}/posts", "-H", f"Cookie: {cookie}"),
            BY_TOKEN: (f"{members_only}/posts", "-H", f"Authorization: Bearer {token}"),
        }
    )
    targets = {(BY_SESSION, EVERYONE): 0.45, (BY_TOKEN, EVERYONE): 0.45}
    yield Row("GET /posts with cache, where only members may read", rates, targets)


def reading_while_writing(bench: Bench) -> Iterator[Row]:
    """Compare the cached list with the same list while new posts empty the cache."""
    cookie = sign_up_and_in(bench.cached, "author")
    finished = Event()

    def write() -> None:
        while not finished.wait(1 / WRITES):
            post(f"{bench.cached}/posts", NEW_POST, cookie)

    rates: dict[str, list[float]] = {QUIET: [], BUSY: []}
    with ThreadPoolExecutor() as pool:
        for _ in range(bench.rounds):
            rates[QUIET].append(per_second(f"{bench.cached}/posts", bench.seconds))
            finished.clear()
            writing = pool.submit(write)
            try:
                rates[BUSY].append(per_second(f"{bench.cached}/posts", bench.seconds))
            finally:
                finished.set()
            writing.result()
    medians = {name: median(values) for name, values in rates.items()}
    yield Row("GET /posts with cache", medians, {(BUSY, QUIET): 0.80})


def pages(bench: Bench) -> Iterator[Row]:
    """Compare the pages for people with a bare view that sends the same bytes."""
    path = f"/posts/{data.post_id(2)}/comments"
    cookie = sign_up_and_in(bench.cached, "commenter")
    for number in range(COMMENTS):
        post(f"{bench.cached}{path}", {"content": f"Comment *{number}*: {data.LINE}"}, cookie)
    for name, path, target in (
        ("GET /: 20 posts as HTML", "/", 0.15),
        (f"GET /p/{{id}}: {COMMENTS} comments as HTML", f"/p/{data.post_id(2)}", 0.08),
    ):
        bare = bench.bare(get_body(bench.cached + path))
        yield Row(
            name,
            bench.compare(
                {
                    OURS: (bench.cached + path,),
                    UNCACHED: (bench.uncached + path,),
                    LIMIT: (f"{bare}/bytes",),
                }
            ),
            {(OURS, LIMIT): 0.90, (UNCACHED, LIMIT): target},
        )


def behind_nginx(bench: Bench) -> Iterator[Row]:
    with nginx.serve(bench.folder / "nginx", bench.sqlite_url) as site:
        contenders = {BEHIND_NGINX: (f"{site.posting}/posts",), STATIC: (f"{site.static}/posts",)}
        rates = bench.compare(contenders)
    yield Row(
        "GET /posts over HTTPS, with the shipped nginx.conf", rates, {(BEHIND_NGINX, STATIC): 0.75}
    )


def scaling(bench: Bench) -> Iterator[Row]:
    """Compare database sizes without the cache, which would hide the differences."""
    urls = {}
    for posts in (FEW, MANY):
        database = f"sqlite:///{bench.folder / f'{posts}.db'}"
        data.create(database, posts)
        urls[posts] = bench.posting(database, POSTING_RESPONSE_CACHE="off")
    deep = {posts: find_page(url, min(PAGE, posts // 40)) for posts, url in urls.items()}
    for name, paths in (
        ("first page", dict.fromkeys(urls, "/posts")),
        (f"page {PAGE:,}, by cursor", deep),
        ("single post", {posts: f"/posts/{data.post_id(posts // 2)}" for posts in urls}),
    ):
        contenders = {posts: (url + paths[posts],) for posts, url in urls.items()}
        yield bench.compare_sizes(f"{name}, by number of posts", contenders)


def find_page(url: str, number: int) -> str:
    """Return the path of a page, found by following the links of larger pages."""
    target = f"{url}/posts?limit=100"
    for _ in range(number * 20 // 100):
        with urlopen(target) as response:
            target = response.headers["Link"].partition(">")[0].removeprefix("<")
    return target.removeprefix(url).replace("limit=100", "limit=20")
