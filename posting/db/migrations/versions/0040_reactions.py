"""Reactions to posts and comments, and their counts."""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
NAMES = ("thumbs_up", "heart", "party", "laugh", "surprise", "thanks")


def upgrade() -> None:
    op.create_table(
        "reactions",
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("post_id", IDENTIFIER, nullable=False),
        sa.Column("text_id", IDENTIFIER, nullable=False),
        sa.Column("comment_id", IDENTIFIER),
        sa.Column("name", sa.String(16), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "post_id", "text_id", name="pk_reactions"),
        *(
            sa.ForeignKeyConstraint(
                [f"{table[:-1]}_id"],
                [f"{table}.id"],
                name=f"fk_reactions_{table[:-1]}_id_{table}",
                ondelete="CASCADE",
            )
            for table in ("users", "posts", "comments")
        ),
        sa.CheckConstraint(f"name IN {NAMES}", name=op.f("ck_reactions_name")),
        sa.CheckConstraint(
            "text_id = coalesce(comment_id, post_id)", name=op.f("ck_reactions_text_id")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_reactions_post_id", "reactions", ["post_id"])
    on_comment = sa.text("comment_id IS NOT NULL")
    op.create_index(
        "ix_reactions_comment_id",
        "reactions",
        ["comment_id"],
        sqlite_where=on_comment,
        postgresql_where=on_comment,
    )
    for table in ("posts", "comments"):
        for name in NAMES:
            column = sa.Column(name, sa.Integer, server_default="0", nullable=False)
            op.add_column(table, column)


def downgrade() -> None:
    for table in ("posts", "comments"):
        for name in NAMES:
            op.drop_column(table, name)
    op.drop_table("reactions")
