"""Posts that are deleted in steps, changes of accounts, and what deletions of old rows remember."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)
KINDS = "kind IN ('post', 'comment', 'image', 'user')"
FORMER_KINDS = "kind IN ('post', 'comment', 'image')"


def upgrade() -> None:
    # Databases from before version 1.0.0 have the log in a former shape as well.
    op.execute("DROP VIEW IF EXISTS moderation_acts")

    op.add_column("posts", sa.Column("deleted_at", TIMESTAMP))
    is_deleted = sa.text("deleted_at IS NOT NULL")
    op.create_index(
        "ix_posts_deleted_at_id",
        "posts",
        ["deleted_at", "id"],
        sqlite_where=is_deleted,
        postgresql_where=is_deleted,
    )

    change_kinds(KINDS, has_post=False)

    zero = sa.text("0")
    for name in ("purged_transaction_id", "purged_seq"):
        column = sa.Column(name, sa.BigInteger, nullable=False, server_default=zero)
        op.add_column("epochs", column)
    op.add_column("epochs", sa.Column("purged_epoch", sa.String(16)))
    for name in ("clock_read_at", "trusted_at"):
        op.add_column("epochs", sa.Column(name, TIMESTAMP))
    # The clock is read now. Otherwise, the first deletion of expired rows would trust a clock that
    # has jumped meanwhile.
    epochs = sa.table(
        "epochs", sa.column("clock_read_at", TIMESTAMP), sa.column("trusted_at", TIMESTAMP)
    )
    time = datetime.now(UTC)
    op.execute(sa.update(epochs).values(clock_read_at=time, trusted_at=time))


def downgrade() -> None:
    finish_deletions()
    op.drop_index("ix_posts_deleted_at_id", "posts")
    op.drop_column("posts", "deleted_at")

    op.execute("DELETE FROM changes WHERE kind = 'user'")
    change_kinds(FORMER_KINDS, has_post=True)

    for name in (
        "trusted_at",
        "clock_read_at",
        "purged_epoch",
        "purged_seq",
        "purged_transaction_id",
    ):
        op.drop_column("epochs", name)


def change_kinds(kinds: str, *, has_post: bool) -> None:
    """Let the log of changes have other kinds, and require a post or not."""
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("changes", "post_id", nullable=not has_post)
        op.drop_constraint(op.f("ck_changes_kind"), "changes")
        op.create_check_constraint(op.f("ck_changes_kind"), "changes", kinds)
        return
    op.drop_index("ix_changes_transaction_id_seq", "changes")
    op.rename_table("changes", "former_changes")
    op.create_table(
        "changes",
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("transaction_id", sa.BigInteger),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("post_id", IDENTIFIER, nullable=not has_post),
        sa.Column("change", sa.String(8), nullable=False),
        sa.Column("at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_changes"),
        sa.CheckConstraint(kinds, name=op.f("ck_changes_kind")),
        sa.CheckConstraint(
            "change IN ('created', 'edited', 'deleted')", name=op.f("ck_changes_change")
        ),
    )
    op.execute("INSERT INTO changes SELECT * FROM former_changes")
    op.drop_table("former_changes")
    op.create_index(
        "ix_changes_transaction_id_seq",
        "changes",
        ["transaction_id", "seq"],
        sqlite_where=sa.text("transaction_id IS NOT NULL"),
    )


def finish_deletions() -> None:
    """Delete the posts that are deleted for readers, and all rows that belong to them.

    SQLite deletes nothing by cascades while the schema is changed.
    """
    posts, images, comments, notifications = map(
        table, ("posts", "images", "comments", "notifications")
    )
    deleted = sa.select(posts.c.id).where(posts.c.deleted_at.is_not(None))
    deleted_images = sa.select(images.c.id).where(images.c.post_id.in_(deleted))
    deleted_comments = sa.select(comments.c.id).where(comments.c.post_id.in_(deleted))
    of_comments = notifications.c.comment_id.in_(deleted_comments)
    op.execute(sa.delete(notifications).where(of_comments))
    for each in map(table, ("thumbnails", "image_data")):
        op.execute(sa.delete(each).where(each.c.image_id.in_(deleted_images)))
    for each in (images, notifications, table("subscriptions"), comments, table("post_search")):
        op.execute(sa.delete(each).where(each.c.post_id.in_(deleted)))
    op.execute(sa.delete(posts).where(posts.c.deleted_at.is_not(None)))


def table(name: str) -> sa.TableClause:
    """Return a table with the columns by which rows are found here."""
    columns = ("id", "post_id", "image_id", "comment_id", "deleted_at")
    return sa.table(name, *map(sa.column, columns))
