"""`flask demo`: generated content."""

import click
import sqlalchemy as sa
from flask.cli import with_appcontext

from posting.accounts.models import User
from posting.cli import examples
from posting.db.epoch import renew_epoch
from posting.db.migrations import require_current
from posting.db.transactions import fetch_value, transaction
from posting.plurals import count
from posting.posts.models import Post
from posting.posts.schemas import IMAGES_PER_POST
from posting.progress import progress


@examples("flask demo", "flask demo --posts 100000 --users 1000 --comments 0 --images 0")
@click.command("demo")
@click.option("--posts", default=1000, show_default=True, type=click.IntRange(1, 10_000_000))
@click.option("--users", "people", default=100, show_default=True, type=click.IntRange(1, 100_000))
@click.option("--comments", default=3000, show_default=True, type=click.IntRange(0, 10_000_000))
@click.option("--images", default=100, show_default=True, type=click.IntRange(0, 1_000_000))
@click.option("--force", is_flag=True, help="Add to a database that is not empty.")
@with_appcontext
def fill_with_demo(posts: int, people: int, comments: int, images: int, force: bool) -> None:
    """Fill an empty database with generated users, posts, comments, images and reports.

    All generated users have the same public password, which is printed at the end.
    """
    from posting.ops import demo  # noqa: PLC0415 - imports Pillow, which no other command needs

    require_current()
    if images > posts * IMAGES_PER_POST:
        raise click.UsageError(f"A post has at most {IMAGES_PER_POST} images.")
    if not force and any(fetch_value(sa.select(sa.exists(kind.id))) for kind in (User, Post)):
        raise click.ClickException(
            "The database holds users or posts, and the password of generated users is public. "
            "Set POSTING_DATABASE_URL to another database, or add --force to use this one."
        )
    users = demo.add_users(people)
    author_ids = [user["id"] for user in users]
    with progress("Writing posts", posts) as advance:
        for written in demo.add_posts(posts, comments, images, author_ids):
            advance(written)
    demo.add_newcomers(author_ids)
    demo.add_reports(author_ids)
    with transaction() as connection:
        renew_epoch(connection)  # these posts are not among the changes that apps follow
    click.echo(
        f"Added {count(people, 'user')} and {count(posts, 'post')} with "
        f"{count(comments, 'comment')} and {count(images, 'image')}. "
        f"Sign in as {users[0]['username']} with the password: {demo.PASSWORD}"
    )
