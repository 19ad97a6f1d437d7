"""Webhooks, and what is delivered to them."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("creator_id", IDENTIFIER, nullable=False),
        sa.Column("url", sa.String(1000), nullable=False),
        sa.Column("events", sa.String(200), nullable=False),
        sa.Column("secret", sa.String(64), nullable=False),
        sa.Column("cursor", sa.String(64), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("failing_since", TIMESTAMP),
        sa.Column("resumes_at", TIMESTAMP),
        sa.Column("ended_at", TIMESTAMP),
        sa.CheckConstraint("length(url) <= 1000", name=op.f("ck_webhooks_url_length")),
        sa.CheckConstraint("length(events) <= 200", name=op.f("ck_webhooks_events_length")),
        sa.CheckConstraint("length(secret) <= 64", name=op.f("ck_webhooks_secret_length")),
        sa.CheckConstraint("length(cursor) <= 64", name=op.f("ck_webhooks_cursor_length")),
        sa.ForeignKeyConstraint(
            ["creator_id"], ["users.id"], name="fk_webhooks_creator_id_users", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
    )
    op.create_index("ix_webhooks_creator_id", "webhooks", ["creator_id"])
    op.create_index("ix_webhooks_created_at_id", "webhooks", ["created_at", "id"])
    op.create_table(
        "deliveries",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("webhook_id", IDENTIFIER, nullable=False),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("object_id", IDENTIFIER, nullable=False),
        sa.Column("post_id", IDENTIFIER),
        sa.Column("happened_at", TIMESTAMP, nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("delivered_at", TIMESTAMP),
        sa.Column("status", sa.SmallInteger()),
        sa.Column("error", sa.String(300)),
        sa.CheckConstraint("length(error) <= 300", name=op.f("ck_deliveries_error_length")),
        sa.ForeignKeyConstraint(
            ["webhook_id"],
            ["webhooks.id"],
            name="fk_deliveries_webhook_id_webhooks",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
    )
    op.create_index(
        "ix_deliveries_webhook_id_created_at_id", "deliveries", ["webhook_id", "created_at", "id"]
    )
    op.create_index("ix_deliveries_created_at", "deliveries", ["created_at"])


def downgrade() -> None:
    op.execute("DELETE FROM outbox WHERE channel = 'webhook'")
    op.drop_table("deliveries")
    op.drop_table("webhooks")
