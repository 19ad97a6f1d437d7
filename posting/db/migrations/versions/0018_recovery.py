"""Links and recovery codes, by which people set a password."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "reset_links",
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("expires_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("user_id", name="pk_reset_links"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_reset_links_user_id_users", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_reset_links_expires_at", "reset_links", ["expires_at"])
    op.create_table(
        "recovery_codes",
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("code_hash", sa.String(64), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "code_hash", name="pk_recovery_codes"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_recovery_codes_user_id_users", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    op.drop_table("recovery_codes")
    op.drop_table("reset_links")
