"""When the user of an account was last seen, at first by the sessions and tokens that exist."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("users", sa.Column("last_seen_at", sa.DateTime(timezone=True)))
    op.execute(
        """
        UPDATE users SET last_seen_at = seen.time
        FROM (
            SELECT user_id, max(time) AS time
            FROM (
                SELECT user_id, last_seen_at AS time FROM sessions
                UNION ALL SELECT user_id, last_used_at FROM tokens
            ) AS uses
            GROUP BY user_id
        ) AS seen
        WHERE seen.user_id = users.id
        """
    )


def downgrade() -> None:
    op.drop_column("users", "last_seen_at")
