"""The log of changes, and the epoch of the database."""

import sqlalchemy as sa
from alembic import op

from posting.db.types import new_id

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "changes",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            sa.Identity(),  # on Postgres, because a SERIAL needs privileges on a sequence
            nullable=False,
        ),
        sa.Column("transaction_id", sa.BigInteger()),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("post_id", IDENTIFIER, nullable=False),
        sa.Column("change", sa.String(8), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_changes"),
        sa.CheckConstraint("kind IN ('post', 'comment', 'image')", name=op.f("ck_changes_kind")),
        sa.CheckConstraint(
            "change IN ('created', 'edited', 'deleted')", name=op.f("ck_changes_change")
        ),
    )
    condition = sa.text("transaction_id IS NOT NULL")
    op.create_index(
        "ix_changes_transaction_id_seq",
        "changes",
        ["transaction_id", "seq"],
        sqlite_where=condition,
        postgresql_where=condition,
    )
    epochs = op.create_table(
        "epochs",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_epochs"),
    )
    op.execute(sa.insert(epochs).values(id=new_id()))


def downgrade() -> None:
    op.drop_table("epochs")
    op.drop_table("changes")
