"""Files of posts and comments."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)


def upgrade() -> None:
    for table in ("posts", "comments"):
        count = sa.Column("file_count", sa.Integer, server_default="0", nullable=False)
        op.add_column(table, count)
    op.create_table(
        "files",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("post_id", IDENTIFIER),
        sa.Column("comment_id", IDENTIFIER),
        sa.Column("owner_id", IDENTIFIER),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("unattached_since", TIMESTAMP),
        sa.PrimaryKeyConstraint("id", name="pk_files"),
        sa.ForeignKeyConstraint(
            ["post_id"], ["posts.id"], name="fk_files_post_id_posts", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["comment_id"], ["comments.id"], name="fk_files_comment_id_comments", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name="fk_files_owner_id_users", ondelete="SET NULL"
        ),
        sa.CheckConstraint(
            "(post_id IS NULL) = (unattached_since IS NOT NULL)", name=op.f("ck_files_attached")
        ),
        sa.CheckConstraint(
            "comment_id IS NULL OR post_id IS NOT NULL", name=op.f("ck_files_comment")
        ),
        sa.CheckConstraint("length(name) BETWEEN 3 AND 100", name=op.f("ck_files_name_length")),
        sa.CheckConstraint("size > 0", name=op.f("ck_files_size")),
    )
    op.create_index("ix_files_post_id_comment_id", "files", ["post_id", "comment_id"])
    op.create_index("ix_files_owner_id_post_id_size", "files", ["owner_id", "post_id", "size"])
    for name in ("comment_id", "unattached_since"):
        where = sa.text(f"{name} IS NOT NULL")
        op.create_index(
            f"ix_files_{name}", "files", [name], sqlite_where=where, postgresql_where=where
        )
    op.create_table(
        "file_data",
        sa.Column("file_id", IDENTIFIER, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("file_id", name="pk_file_data"),
        sa.ForeignKeyConstraint(
            ["file_id"], ["files.id"], name="fk_file_data_file_id_files", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    op.drop_table("file_data")
    op.drop_table("files")
    for table in ("comments", "posts"):
        op.drop_column(table, "file_count")
