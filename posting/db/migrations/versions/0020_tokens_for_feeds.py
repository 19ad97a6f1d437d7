"""Tokens for feeds.

SQLite cannot replace a CHECK constraint, so Alembic creates the table again there.
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0018"
branch_labels = None
depends_on = None

TIMESTAMP = sa.DateTime(timezone=True)
# As in 0009. Alembic need not look into the database, where SQLAlchemy knows not every index.
TOKENS = sa.Table(
    "tokens",
    sa.MetaData(),
    sa.Column("id", sa.String(21), nullable=False),
    sa.Column("user_id", sa.String(21), nullable=False),
    sa.Column("token_hash", sa.String(64), nullable=False),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("scope", sa.String(8), nullable=False),
    sa.Column("created_at", TIMESTAMP, nullable=False),
    sa.Column("expires_at", TIMESTAMP, nullable=False),
    sa.Column("last_used_at", TIMESTAMP),
    sa.PrimaryKeyConstraint("id", name="pk_tokens"),
    sa.UniqueConstraint("token_hash", name="uq_tokens_token_hash"),
    sa.ForeignKeyConstraint(
        ["user_id"], ["users.id"], name="fk_tokens_user_id_users", ondelete="CASCADE"
    ),
    sa.CheckConstraint("scope IN ('read', 'write')", name="ck_tokens_scope"),
    sa.Index("ix_tokens_user_id", "user_id"),
    sa.Index("ix_tokens_expires_at", "expires_at"),
)


def upgrade() -> None:
    allow("'read', 'write', 'feed'")


def downgrade() -> None:
    op.execute("DELETE FROM tokens WHERE scope = 'feed'")
    allow("'read', 'write'")


def allow(scopes: str) -> None:
    name = op.f("ck_tokens_scope")
    with op.batch_alter_table("tokens", copy_from=TOKENS) as tokens:
        tokens.drop_constraint(name, type_="check")
        tokens.create_check_constraint(name, f"scope IN ({scopes})")
