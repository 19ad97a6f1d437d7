"""Devices that get notifications by web push, and the key of the service for it."""

import sqlalchemy as sa
from alembic import op

from posting.db.epoch import new_push_key

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "push_subscriptions",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("session_id", IDENTIFIER, nullable=False),
        sa.Column("endpoint", sa.String(1000), nullable=False),
        sa.Column("p256dh", sa.String(87), nullable=False),
        sa.Column("auth", sa.String(22), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("failing_since", TIMESTAMP),
        sa.Column("resumes_at", TIMESTAMP),
        sa.CheckConstraint(
            "length(endpoint) <= 1000", name=op.f("ck_push_subscriptions_endpoint_length")
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name="fk_push_subscriptions_user_id_users",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name="fk_push_subscriptions_session_id_sessions",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_push_subscriptions"),
        sa.UniqueConstraint("endpoint", name="uq_push_subscriptions_endpoint"),
    )
    op.create_index("ix_push_subscriptions_user_id", "push_subscriptions", ["user_id"])
    op.create_index("ix_push_subscriptions_session_id", "push_subscriptions", ["session_id"])
    op.add_column("epochs", sa.Column("push_key", sa.String(43)))
    epochs = sa.table("epochs", sa.column("push_key", sa.String(43)))
    op.execute(sa.update(epochs).values(push_key=new_push_key()))


def downgrade() -> None:
    op.drop_column("epochs", "push_key")
    op.drop_table("push_subscriptions")
