"""The thread of each comment, by which pages show whole threads.

Until its restart, the former version adds comments without a thread; a trigger adds theirs. A later
migration can drop it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")

FILL = """
    WITH RECURSIVE found (id, thread_id, thread_at) AS (
        SELECT id, id, created_at FROM comments WHERE parent_id IS NULL
        UNION ALL
        SELECT comments.id, found.thread_id, found.thread_at
        FROM comments JOIN found ON comments.parent_id = found.id
    )
    UPDATE comments SET thread_id = found.thread_id, thread_at = found.thread_at
    FROM found WHERE comments.id = found.id
"""
ON_SQLITE = """
    CREATE TRIGGER add_thread AFTER INSERT ON comments WHEN NEW.thread_id IS NULL BEGIN
        UPDATE comments SET
            thread_id = coalesce(
                (SELECT thread_id FROM comments WHERE id = NEW.parent_id), NEW.id
            ),
            thread_at = coalesce(
                (SELECT thread_at FROM comments WHERE id = NEW.parent_id), NEW.created_at
            )
        WHERE id = NEW.id;
    END
"""
ON_POSTGRES = (
    """
    CREATE FUNCTION add_thread() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        SELECT parent.thread_id, parent.thread_at INTO NEW.thread_id, NEW.thread_at
        FROM comments AS parent WHERE parent.id = NEW.parent_id;
        NEW.thread_id = coalesce(NEW.thread_id, NEW.id);
        NEW.thread_at = coalesce(NEW.thread_at, NEW.created_at);
        RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER add_thread BEFORE INSERT ON comments FOR EACH ROW
    WHEN (NEW.thread_id IS NULL) EXECUTE FUNCTION add_thread()
    """,
)


def upgrade() -> None:
    op.add_column("comments", sa.Column("thread_id", IDENTIFIER))
    op.add_column("comments", sa.Column("thread_at", sa.DateTime(timezone=True)))
    op.execute(FILL)
    op.create_index(
        "ix_comments_thread", "comments", ["post_id", "thread_at", "thread_id", "created_at", "id"]
    )
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    for statement in [ON_SQLITE] if on_sqlite else ON_POSTGRES:
        op.execute(statement)


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER add_thread")
    else:
        op.execute("DROP TRIGGER add_thread ON comments")
        op.execute("DROP FUNCTION add_thread()")
    op.drop_index("ix_comments_thread", "comments")
    op.drop_column("comments", "thread_at")
    op.drop_column("comments", "thread_id")
