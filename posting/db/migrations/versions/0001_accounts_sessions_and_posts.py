"""Accounts, sessions and posts."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "users",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("username", sa.String(32), nullable=False),
        sa.Column("display_name", sa.String(64)),
        sa.Column("bio", sa.String(500)),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("password_hash", sa.String(256), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.CheckConstraint(
            "length(username) BETWEEN 3 AND 32", name=op.f("ck_users_username_length")
        ),
        sa.CheckConstraint("length(display_name) <= 64", name=op.f("ck_users_display_name_length")),
        sa.CheckConstraint("length(bio) <= 500", name=op.f("ck_users_bio_length")),
        sa.CheckConstraint("role IN ('member', 'moderator')", name=op.f("ck_users_role")),
    )
    op.create_index("uq_users_username", "users", [sa.text("lower(username)")], unique=True)

    op.create_table(
        "sessions",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("user_agent", sa.String(256), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("last_seen_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.UniqueConstraint("token_hash", name="uq_sessions_token_hash"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_sessions_user_id_users", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_sessions_user_id", "sessions", ["user_id"])
    op.create_index("ix_sessions_created_at", "sessions", ["created_at"])

    op.create_table(
        "posts",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("author_id", IDENTIFIER),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("comment_count", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("updated_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_posts"),
        sa.ForeignKeyConstraint(
            ["author_id"], ["users.id"], name="fk_posts_author_id_users", ondelete="SET NULL"
        ),
        sa.CheckConstraint("length(title) BETWEEN 1 AND 200", name=op.f("ck_posts_title_length")),
        sa.CheckConstraint(
            "length(content) BETWEEN 1 AND 100000", name=op.f("ck_posts_content_length")
        ),
        sa.CheckConstraint("comment_count >= 0", name=op.f("ck_posts_comment_count")),
    )
    op.create_index("ix_posts_created_at_id", "posts", ["created_at", "id"])
    op.create_index("ix_posts_author_id_created_at_id", "posts", ["author_id", "created_at", "id"])


def downgrade() -> None:
    for table in ("posts", "sessions", "users"):
        op.drop_table(table)
