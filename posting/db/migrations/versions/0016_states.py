"""States of accounts: a suspension may have an end, and a new account may wait for approval."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

TIMESTAMP = sa.DateTime(timezone=True)
IS_PENDING = sa.text("pending_since IS NOT NULL")


def upgrade() -> None:
    op.add_column("users", sa.Column("suspended_until", TIMESTAMP))
    op.add_column("users", sa.Column("pending_since", TIMESTAMP))
    check = sa.CheckConstraint(
        "length(application) BETWEEN 1 AND 1000", name=op.f("ck_users_application_length")
    )
    op.add_column("users", sa.Column("application", sa.String(1000), check))
    op.create_index(
        "ix_users_pending_since_id",
        "users",
        ["pending_since", "id"],
        sqlite_where=IS_PENDING,
        postgresql_where=IS_PENDING,
    )


def downgrade() -> None:
    # The former version has no pending accounts. It must not let these in without approval.
    op.execute("UPDATE users SET suspended_at = pending_since WHERE pending_since IS NOT NULL")
    op.drop_index("ix_users_pending_since_id", "users")
    op.drop_column("users", "application")
    op.drop_column("users", "pending_since")
    op.drop_column("users", "suspended_until")
