"""The password given again in a session, and when an owner last downloaded a backup."""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sessions", sa.Column("confirmed_at", sa.DateTime(timezone=True)))
    op.add_column("site", sa.Column("backed_up_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("site", "backed_up_at")
    op.drop_column("sessions", "confirmed_at")
