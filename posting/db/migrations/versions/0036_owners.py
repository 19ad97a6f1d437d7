"""The role of owners. The link of the first start makes an owner."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)


def upgrade() -> None:
    change_roles(
        "role IN ('member', 'moderator')", "role IN ('member', 'moderator', 'owner')", "users"
    )
    create_index_of_moderators("role != 'member'")
    op.execute("DELETE FROM invitations WHERE role = 'moderator'")  # the next start makes a link
    change_roles("role IN ('member', 'moderator')", "role IN ('member', 'owner')", "invitations")


def downgrade() -> None:
    op.execute("DELETE FROM invitations WHERE role = 'owner'")
    change_roles("role IN ('member', 'owner')", "role IN ('member', 'moderator')", "invitations")
    op.execute("UPDATE users SET role = 'moderator' WHERE role = 'owner'")
    change_roles(
        "role IN ('member', 'moderator', 'owner')", "role IN ('member', 'moderator')", "users"
    )
    create_index_of_moderators("role = 'moderator'")


def change_roles(former: str, new: str, name: str) -> None:
    """Replace the rule for the roles in a table. On SQLite, a new table takes its place."""
    table = {"users": users, "invitations": invitations}[name](former)
    if name == "users":
        op.drop_index("ix_users_moderators", "users")
        op.drop_index("uq_users_username", "users")
    with op.batch_alter_table(name, copy_from=table) as batch:
        batch.drop_constraint(op.f(f"ck_{name}_role"), type_="check")
        batch.create_check_constraint(op.f(f"ck_{name}_role"), new)
    if name == "users":
        op.create_index("uq_users_username", "users", [sa.text("lower(username)")], unique=True)


def create_index_of_moderators(condition: str) -> None:
    where = sa.text(condition)
    op.create_index(
        "ix_users_moderators", "users", ["id"], sqlite_where=where, postgresql_where=where
    )


def users(roles: str) -> sa.Table:
    pending = sa.text("pending_since IS NOT NULL")
    return sa.Table(
        "users",
        sa.MetaData(),
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("username", sa.String(32), nullable=False),
        sa.Column("display_name", sa.String(64)),
        sa.Column("bio", sa.String(500)),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("password_hash", sa.String(256), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("suspended_at", TIMESTAMP),
        sa.Column("edited_at", TIMESTAMP),
        sa.Column("suspended_until", TIMESTAMP),
        sa.Column("pending_since", TIMESTAMP),
        sa.Column("application", sa.String(1000)),
        sa.Column("last_seen_at", TIMESTAMP),
        sa.Column("suspension_reason", sa.String(500)),
        sa.Column("avatar_id", IDENTIFIER),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.CheckConstraint("length(username) BETWEEN 3 AND 32", name="ck_users_username_length"),
        sa.CheckConstraint("length(display_name) <= 64", name="ck_users_display_name_length"),
        sa.CheckConstraint("length(bio) <= 500", name="ck_users_bio_length"),
        sa.CheckConstraint(roles, name="ck_users_role"),
        sa.CheckConstraint(
            "length(application) BETWEEN 1 AND 1000", name="ck_users_application_length"
        ),
        sa.CheckConstraint(
            "length(suspension_reason) <= 500", name="ck_users_suspension_reason_length"
        ),
        sa.Index("ix_users_pending_since_id", "pending_since", "id", sqlite_where=pending),
    )


def invitations(roles: str) -> sa.Table:
    metadata = sa.MetaData()
    sa.Table("users", metadata, sa.Column("id", IDENTIFIER, primary_key=True))
    return sa.Table(
        "invitations",
        metadata,
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("created_by_id", IDENTIFIER),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("note", sa.String(100)),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("uses", sa.Integer, nullable=False),
        sa.Column("uses_left", sa.Integer, nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("expires_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.ForeignKeyConstraint(
            ["created_by_id"],
            ["users.id"],
            name="fk_invitations_created_by_id_users",
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("length(note) <= 100", name="ck_invitations_note_length"),
        sa.CheckConstraint(roles, name="ck_invitations_role"),
        sa.CheckConstraint("uses BETWEEN 1 AND 100", name="ck_invitations_uses"),
        sa.CheckConstraint("uses_left BETWEEN 0 AND uses", name="ck_invitations_uses_left"),
        sa.Index("ix_invitations_created_at_id", "created_at", "id"),
        sa.Index("ix_invitations_created_by_id_created_at_id", "created_by_id", "created_at", "id"),
        sa.Index("ix_invitations_expires_at", "expires_at"),
    )
