"""Invitations, and who came by which."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "invitations",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("created_by_id", IDENTIFIER),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("note", sa.String(100)),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("uses_left", sa.Integer(), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("expires_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.ForeignKeyConstraint(
            ["created_by_id"],
            ["users.id"],
            name="fk_invitations_created_by_id_users",
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("length(note) <= 100", name=op.f("ck_invitations_note_length")),
        sa.CheckConstraint("role IN ('member', 'moderator')", name=op.f("ck_invitations_role")),
        sa.CheckConstraint("uses BETWEEN 1 AND 100", name=op.f("ck_invitations_uses")),
        sa.CheckConstraint("uses_left BETWEEN 0 AND uses", name=op.f("ck_invitations_uses_left")),
    )
    op.create_index("ix_invitations_created_at_id", "invitations", ["created_at", "id"])
    op.create_index(
        "ix_invitations_created_by_id_created_at_id",
        "invitations",
        ["created_by_id", "created_at", "id"],
    )
    op.create_index("ix_invitations_expires_at", "invitations", ["expires_at"])
    op.create_table(
        "invitation_uses",
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("invitation_id", IDENTIFIER, nullable=False),
        sa.Column("invited_by_id", IDENTIFIER),
        sa.PrimaryKeyConstraint("user_id", name="pk_invitation_uses"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_invitation_uses_user_id_users", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["invited_by_id"],
            ["users.id"],
            name="fk_invitation_uses_invited_by_id_users",
            ondelete="SET NULL",
        ),
    )
    op.create_index("ix_invitation_uses_invitation_id", "invitation_uses", ["invitation_id"])
    op.create_index("ix_invitation_uses_invited_by_id", "invitation_uses", ["invited_by_id"])


def downgrade() -> None:
    op.drop_table("invitation_uses")
    op.drop_table("invitations")
