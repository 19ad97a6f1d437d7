"""Mail addresses, and the links in mails."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "mailboxes",
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("address", sa.String(254)),
        sa.Column("pending_address", sa.String(254)),
        sa.Column("pending_until", TIMESTAMP),
        sa.Column("key", IDENTIFIER, nullable=False),
        sa.Column("mail", sa.String(8), nullable=False),
        sa.Column("text", sa.String(16), nullable=False),
        sa.Column("letter", sa.Boolean(), nullable=False),
        sa.Column("push", sa.Boolean(), nullable=False),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("digest_at", TIMESTAMP),
        sa.Column("digested_until", TIMESTAMP),
        sa.Column("letter_at", TIMESTAMP),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failing_since", TIMESTAMP),
        sa.CheckConstraint("length(address) <= 254", name=op.f("ck_mailboxes_address_length")),
        sa.CheckConstraint(
            "length(pending_address) <= 254", name=op.f("ck_mailboxes_pending_address_length")
        ),
        sa.CheckConstraint(
            "mail IN ('each', 'daily', 'weekly', 'none')", name=op.f("ck_mailboxes_mail")
        ),
        sa.CheckConstraint(
            "text IN ('whole', 'beginning', 'link')", name=op.f("ck_mailboxes_text")
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_mailboxes_user_id_users", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", name="pk_mailboxes"),
        sa.UniqueConstraint("key", name="uq_mailboxes_key"),
    )
    op.create_index("ix_mailboxes_address", "mailboxes", ["address"])
    for name, column, text in (
        ("ix_mailboxes_digest_at", "digest_at", "digest_at IS NOT NULL"),
        ("ix_mailboxes_letter_at", "letter_at", "letter_at IS NOT NULL"),
        ("ix_mailboxes_each", "user_id", "mail = 'each'"),
    ):
        condition = sa.text(text)
        op.create_index(
            name, "mailboxes", [column], sqlite_where=condition, postgresql_where=condition
        )
    op.create_table(
        "former_addresses",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("address", sa.String(254), nullable=False),
        sa.CheckConstraint(
            "length(address) <= 254", name=op.f("ck_former_addresses_address_length")
        ),
        sa.ForeignKeyConstraint(
            ["id"], ["outbox.id"], name="fk_former_addresses_id_outbox", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_former_addresses_user_id_users", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_former_addresses"),
    )
    op.create_index("ix_former_addresses_user_id", "former_addresses", ["user_id"])
    op.create_table(
        "mail_links",
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("purpose", sa.String(16), nullable=False),
        sa.Column("address", sa.String(254), nullable=False),
        sa.Column("expires_at", TIMESTAMP, nullable=False),
        sa.CheckConstraint(
            "purpose IN ('confirmation', 'password')", name=op.f("ck_mail_links_purpose")
        ),
        sa.CheckConstraint("length(address) <= 254", name=op.f("ck_mail_links_address_length")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_mail_links_user_id_users", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("secret_hash", name="pk_mail_links"),
    )
    op.create_index("ix_mail_links_user_id", "mail_links", ["user_id"])
    op.create_index("ix_mail_links_expires_at", "mail_links", ["expires_at"])
    for name in ("about_at", "tried_since"):
        op.add_column("outbox", sa.Column(name, TIMESTAMP))


def downgrade() -> None:
    for name in ("about_at", "tried_since"):
        op.drop_column("outbox", name)
    op.drop_table("mail_links")
    op.drop_table("former_addresses")
    op.drop_table("mailboxes")
