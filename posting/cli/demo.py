"""`flask demo`: made-up content."""

import click
from flask.cli import with_appcontext

from posting import demo
from posting.cli.examples import example
from posting.migrations import ensure_current
from posting.models import IMAGES_PER_POST


@example("flask demo", "flask demo --posts 100000 --users 1000 --comments 0 --images 0")
@click.command("demo")
@click.option("--posts", default=1000, show_default=True, type=click.IntRange(1, 10_000_000))
@click.option("--users", "people", default=100, show_default=True, type=click.IntRange(1, 100_000))
@click.option("--comments", default=3000, show_default=True, type=click.IntRange(0, 10_000_000))
@click.option("--images", default=100, show_default=True, type=click.IntRange(0, 1_000_000))
@with_appcontext
def fill_with_demo(posts: int, people: int, comments: int, images: int) -> None:
    """Fill the database with made-up users, posts, comments and images, to look at or to measure.

    All made-up users have the password that is printed at the end.
    """
    ensure_current()
    if images > posts * IMAGES_PER_POST:
        raise click.UsageError(f"A post has at most {IMAGES_PER_POST} images.")
    names = demo.add_users(people)
    author_ids = [user_id for user_id, _ in names]
    with click.progressbar(length=posts, label="Writing posts") as bar:
        for written in demo.add_posts(posts, comments, images, author_ids):
            bar.update(written)
    click.echo(
        f"Added {people} users and {posts} posts with {comments} comments and {images} images. "
        f"Sign in as {names[0][1]} with the password: {demo.PASSWORD}"
    )
