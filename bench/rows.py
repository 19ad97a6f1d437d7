"""The rows of the table: what is measured, beside what, and which ratios are wanted."""

from collections.abc import Iterator
from urllib.request import urlopen

from bench import data, nginx, pocketbase
from bench.harness import POSTS, Bench, Row, body_of, sign_up_and_in

OURS, UNCACHED, ON_POSTGRES = "Posting", "Posting without its cache", "Posting on Postgres"
LIMIT, POCKETBASE = "bare Flask", "PocketBase"
BEHIND_NGINX, STATIC = "Posting behind nginx", "a static file"
FEW, MANY = 1000, 1_000_000
PAGE = 5000


def reading(bench: Bench) -> Iterator[Row]:
    listed = bench.bare(body_of(f"{bench.cached}/posts"))
    yield Row(
        "GET /posts: 20 of 100,000 with authors",
        bench.compare(
            {
                OURS: (f"{bench.cached}/posts",),
                UNCACHED: (f"{bench.uncached}/posts",),
                ON_POSTGRES: (f"{bench.postgres}/posts",),
                LIMIT: (f"{listed}/bytes",),
                POCKETBASE: (bench.pocketbase + pocketbase.LIST,),
            }
        ),
        {
            (OURS, LIMIT): 0.80,
            (OURS, POCKETBASE): 4,
            (UNCACHED, LIMIT): 0.35,
            (UNCACHED, POCKETBASE): 1.8,
            (ON_POSTGRES, LIMIT): 0.25,
        },
    )
    path = f"/posts/{data.post_id(POSTS // 2)}"
    whole = bench.bare(body_of(bench.cached + path))
    yield Row(
        "GET /posts/{id}: 2 KB",
        bench.compare(
            {
                OURS: (bench.cached + path,),
                UNCACHED: (bench.uncached + path,),
                LIMIT: (f"{whole}/bytes",),
                POCKETBASE: (bench.pocketbase + pocketbase.post_url(POSTS // 2),),
            }
        ),
        {(OURS, LIMIT): 0.75, (UNCACHED, LIMIT): 0.40},
    )
    with urlopen(bench.cached + path) as answer:
        known = ("-H", f"If-None-Match: {answer.headers['ETag']}")
    yield Row(
        "304 for GET /posts/{id}",
        bench.compare({OURS: (bench.cached + path, *known), LIMIT: (f"{whole}/unchanged",)}),
        {(OURS, LIMIT): 0.75},
    )
    path = f"/posts/{data.post_id(1)}/comments"
    comments = bench.bare(body_of(bench.cached + path))
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


def behind_nginx(bench: Bench) -> Iterator[Row]:
    with nginx.serving(bench.folder / "nginx", bench.sqlite_url) as site:
        contenders = {BEHIND_NGINX: (f"{site.ours}/posts",), STATIC: (f"{site.static}/posts",)}
        rates = bench.compare(contenders)
    yield Row(
        "GET /posts, with the shipped nginx.conf, by https", rates, {(BEHIND_NGINX, STATIC): 0.75}
    )


def writing(bench: Bench) -> Iterator[Row]:
    bare = bench.bare(b"{}")
    body = {"title": "A title of the ordinary kind", "content": data.LINE * 50}
    options = bench.sending(body, sign_up_and_in(bench.cached, "somebody"))
    yield Row(
        "POST /posts, signed in, synchronous=FULL",
        bench.compare(
            {
                OURS: (f"{bench.cached}/posts", *options),
                LIMIT: (f"{bare}/rows", *options),
            }
        ),
        {(OURS, LIMIT): 0.45},
    )


def scaling(bench: Bench) -> Iterator[Row]:
    """Without the cache, from which all would come alike."""
    urls = {}
    for posts in (FEW, MANY):
        database = f"sqlite:///{bench.folder / f'{posts}.db'}"
        data.make(database, posts)
        urls[posts] = bench.posting(database, POSTING_RESPONSE_CACHE="off")
    deep = {posts: _page(url, min(PAGE, posts // 40)) for posts, url in urls.items()}
    for what, paths in (
        ("first page", dict.fromkeys(urls, "/posts")),
        (f"page {PAGE:,}, by cursor", deep),
        ("a single post", {posts: f"/posts/{data.post_id(posts // 2)}" for posts in urls}),
    ):
        of = {posts: f"{posts:,} posts" for posts in urls}
        rates = bench.compare({of[posts]: (url + paths[posts],) for posts, url in urls.items()})
        yield Row(f"{what}, of many and of few", rates, {(of[MANY], of[FEW]): 0.80})


def _page(url: str, number: int) -> str:
    """Return the path of the page of this number, by way of larger pages before it."""
    target = f"{url}/posts?limit=100"
    for _ in range(number * 20 // 100):
        with urlopen(target) as answer:
            target = answer.headers["Link"].partition(">")[0].removeprefix("<")
    return target.removeprefix(url).replace("limit=100", "limit=20")
