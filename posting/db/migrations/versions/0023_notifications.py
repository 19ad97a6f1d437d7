"""Notifications, and subscriptions to posts."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)
# The indexes of some of the rows: name, columns and condition.
INDEXES = (
    ("ix_notifications_unread", ["user_id", "created_at", "id", "read_at"], "read_at IS NULL"),
    ("ix_notifications_read_at", ["read_at"], "read_at IS NOT NULL"),
    ("ix_notifications_actor_id", ["actor_id"], "actor_id IS NOT NULL"),
    ("ix_notifications_post_id_user_id", ["post_id", "user_id"], "post_id IS NOT NULL"),
    ("ix_notifications_comment_id_user_id", ["comment_id", "user_id"], "comment_id IS NOT NULL"),
)


def upgrade() -> None:
    op.create_table(
        "notifications",
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("actor_id", IDENTIFIER),
        sa.Column("post_id", IDENTIFIER),
        sa.Column("comment_id", IDENTIFIER),
        sa.Column("reason", sa.String(500)),
        sa.Column("excerpt", sa.String(300)),
        sa.Column("read_at", TIMESTAMP),
        sa.PrimaryKeyConstraint("user_id", "created_at", "id", name="pk_notifications"),
        sa.ForeignKeyConstraint(
            ["post_id"], ["posts.id"], name="fk_notifications_post_id_posts", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["comment_id"],
            ["comments.id"],
            name="fk_notifications_comment_id_comments",
            ondelete="CASCADE",
        ),
        sa.CheckConstraint(
            "length(kind) BETWEEN 1 AND 32", name=op.f("ck_notifications_kind_length")
        ),
        sa.CheckConstraint(
            "post_id IS NULL OR comment_id IS NULL", name=op.f("ck_notifications_subject")
        ),
        sa.CheckConstraint("length(reason) <= 500", name=op.f("ck_notifications_reason_length")),
        sa.CheckConstraint("length(excerpt) <= 300", name=op.f("ck_notifications_excerpt_length")),
        sqlite_with_rowid=False,
    )
    for name, columns, where in INDEXES:
        create_partial_index(name, "notifications", columns, where)
    op.create_table(
        "subscriptions",
        sa.Column("post_id", IDENTIFIER, nullable=False),
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("level", sa.String(8), nullable=False),
        sa.PrimaryKeyConstraint("post_id", "user_id", name="pk_subscriptions"),
        sa.ForeignKeyConstraint(
            ["post_id"], ["posts.id"], name="fk_subscriptions_post_id_posts", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_subscriptions_user_id_users", ondelete="CASCADE"
        ),
        sa.CheckConstraint("level IN ('all', 'muted')", name=op.f("ck_subscriptions_level")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_subscriptions_user_id", "subscriptions", ["user_id"])
    create_partial_index("ix_users_moderators", "users", ["id"], "role = 'moderator'")


def downgrade() -> None:
    op.drop_index("ix_users_moderators", "users")
    op.drop_table("subscriptions")
    op.drop_table("notifications")


def create_partial_index(name: str, table: str, columns: list[Any], where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, table, columns, sqlite_where=condition, postgresql_where=condition)
