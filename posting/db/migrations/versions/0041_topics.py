"""Topics, and the posts that have them."""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)
COLORS = (
    *("red", "orange", "yellow", "lime", "green", "mint"),
    *("cyan", "azure", "blue", "purple", "magenta", "pink"),
)


def upgrade() -> None:
    op.create_table(
        "topics",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("color", sa.String(8), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("updated_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_topics"),
        sa.CheckConstraint("length(name) BETWEEN 1 AND 40", name=op.f("ck_topics_name_length")),
        sa.CheckConstraint(f"color IN {COLORS}", name=op.f("ck_topics_color")),
    )
    op.create_table(
        "post_topics",
        sa.Column("post_id", IDENTIFIER, nullable=False),
        sa.Column("topic_id", IDENTIFIER, nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("last_activity_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("post_id", "topic_id", name="pk_post_topics"),
        sa.ForeignKeyConstraint(
            ["post_id"], ["posts.id"], name="fk_post_topics_post_id_posts", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["topic_id"], ["topics.id"], name="fk_post_topics_topic_id_topics", ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    for time in ("created_at", "last_activity_at"):
        columns = ["topic_id", time, "post_id"]
        op.create_index(f"ix_post_topics_topic_id_{time}_post_id", "post_topics", columns)
    has_topics = sa.Column("has_topics", sa.Boolean, server_default=sa.false(), nullable=False)
    op.add_column("posts", has_topics)


def downgrade() -> None:
    op.drop_column("posts", "has_topics")
    op.drop_table("post_topics")
    op.drop_table("topics")
