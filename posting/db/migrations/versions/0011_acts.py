"""The moderation log in columns: the table `acts` takes the place of `moderation_acts`.

The former version serves until its restart, and still adds rows to `moderation_acts`. This is now
a view that adds them to the new table. A later migration can drop the view.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)

# A target was "user ID", or "post ID of ID" with the author, or "post ID" if the author was gone.
VIEW = """
    CREATE VIEW moderation_acts (id, moderator, moderator_id, act, target, created_at) AS
    SELECT id, moderator, moderator_id, action,
        CASE WHEN target_kind = 'user' THEN 'user ' || target_id
        ELSE target_kind || ' ' || target_id || coalesce(' of ' || user_id, '') END,
        created_at
    FROM acts
"""
# A target without a kind is taken for the ID of a user.
INSERT = """
    INSERT INTO acts
        (id, moderator, moderator_id, action, target_kind, target_id, user_id, created_at)
    VALUES (NEW.id, NEW.moderator, NEW.moderator_id, NEW.act,
        CASE WHEN instr(NEW.target, ' ') = 0 THEN 'user'
        ELSE substr(NEW.target, 1, instr(NEW.target, ' ') - 1) END,
        substr(NEW.target, instr(NEW.target, ' ') + 1, 21),
        CASE WHEN instr(NEW.target, ' of ') > 0
        THEN substr(NEW.target, instr(NEW.target, ' of ') + 4)
        WHEN instr(NEW.target, ' ') = 0 OR instr(NEW.target, 'user ') = 1
        THEN substr(NEW.target, instr(NEW.target, ' ') + 1) END,
        NEW.created_at)
"""
ON_SQLITE = "CREATE TRIGGER insert_act INSTEAD OF INSERT ON moderation_acts BEGIN {}; END"
ON_POSTGRES = "CREATE RULE insert_act AS ON INSERT TO moderation_acts DO INSTEAD {}"


def upgrade() -> None:
    op.rename_table("moderation_acts", "former_acts")
    op.create_table(
        "acts",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("moderator", sa.String(32), nullable=False),
        sa.Column("moderator_id", IDENTIFIER),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("target_kind", sa.String(16), nullable=False),
        sa.Column("target_id", IDENTIFIER, nullable=False),
        sa.Column("user_id", IDENTIFIER),
        sa.Column("reason", sa.String(500)),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_acts"),
        sa.CheckConstraint("length(reason) <= 500", name=op.f("ck_acts_reason_length")),
    )
    op.create_index("ix_acts_created_at", "acts", ["created_at"])
    op.execute(VIEW)
    if op.get_bind().dialect.name == "sqlite":
        op.execute(ON_SQLITE.format(INSERT))
    else:
        op.execute(ON_POSTGRES.format(INSERT.replace("instr", "strpos")))
    op.execute("INSERT INTO moderation_acts SELECT * FROM former_acts")
    op.drop_table("former_acts")


def downgrade() -> None:
    op.create_table(
        "former_acts",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("moderator", sa.String(32), nullable=False),
        sa.Column("moderator_id", IDENTIFIER),
        sa.Column("act", sa.String(16), nullable=False),
        sa.Column("target", sa.String(64), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_moderation_acts"),
    )
    op.execute("INSERT INTO former_acts SELECT * FROM moderation_acts")
    op.execute("DROP VIEW moderation_acts")
    op.drop_table("acts")
    op.rename_table("former_acts", "moderation_acts")
    op.create_index("ix_moderation_acts_created_at", "moderation_acts", ["created_at"])
