"""The search index of comments, that of members' names, and an index of the newest comments.

After the upgrade, `env.py` fills those of search. The index of parents no longer has the comments
that have none, which saves a page of each new one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
NAME = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")

# The first of the eight rowids that an entry may have: the milliseconds, and the first 15 bits of
# the id, whose characters have 6.
CHARACTERS = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
A, B, C = (f"(instr('{CHARACTERS}', substr(OLD.id, {place}, 1)) - 1)" for place in (1, 2, 3))
MILLISECONDS = "(unixepoch(substr(OLD.created_at, 1, 19)) * 1000 + substr(OLD.created_at, 21, 3))"
FIRST_ROWID = f"({MILLISECONDS} * 32768 + {A} * 512 + {B} * 8 + {C} / 8)"
# The trigger also runs when the deletion of a post deletes its comments.
TRIGGER = """
    CREATE TRIGGER delete_from_search AFTER DELETE ON comments WHEN OLD.content IS NOT NULL BEGIN
        DELETE FROM comment_search
        WHERE rowid >= {first} AND rowid < {first} + 8 AND comment_id = OLD.id;
    END
"""
ON_SQLITE = (
    "CREATE VIRTUAL TABLE comment_search USING fts5 (content, author, comment_id UNINDEXED, "
    "version UNINDEXED, content='', contentless_delete=1, contentless_unindexed=1, "
    "tokenize=\"ascii tokenchars '-_'\")",
    TRIGGER.format(first=FIRST_ROWID),
)
# As those of posts, see 0008 and 0012.
ON_POSTGRES = (
    'CREATE TABLE comment_search (comment_id VARCHAR(21) COLLATE "C" NOT NULL, '
    "created_at TIMESTAMP WITH TIME ZONE NOT NULL, version INTEGER NOT NULL, text TEXT NOT NULL, "
    "words TSVECTOR NOT NULL, CONSTRAINT pk_comment_search PRIMARY KEY (comment_id), "
    "CONSTRAINT fk_comment_search_comment_id_comments FOREIGN KEY (comment_id) "
    "REFERENCES comments (id) ON DELETE CASCADE)",
    "CREATE INDEX ix_comment_search_created_at_comment_id "
    "ON comment_search (created_at, comment_id)",
    """
    CREATE FUNCTION comment_search_lexemes(words tsvector, created_at timestamptz) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT array_to_tsvector(
            array_agg(year || '/' || lexeme) || (year || '/#' || month)
        )
        FROM unnest(words),
            cast(extract(year FROM created_at AT TIME ZONE 'UTC') AS int) AS year,
            cast(extract(month FROM created_at AT TIME ZONE 'UTC') AS int) AS month
        GROUP BY year, month
    $$
    """,
    "CREATE INDEX ix_comment_search_lexemes ON comment_search "
    "USING gin (comment_search_lexemes(words, created_at))",
)


def create_partial_index(name: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, "comments", columns, sqlite_where=where, postgresql_where=where)


def upgrade() -> None:
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    for statement in ON_SQLITE if on_sqlite else ON_POSTGRES:
        op.execute(statement)
    create_partial_index("ix_comments_created_at_id", ["created_at", "id"], "content IS NOT NULL")
    op.drop_index("ix_comments_parent_id", "comments")
    create_partial_index("ix_comments_parent_id", ["parent_id"], "parent_id IS NOT NULL")
    op.create_table(
        "user_search",
        sa.Column("name", NAME, nullable=False),
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.PrimaryKeyConstraint("name", "user_id", name="pk_user_search"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], "fk_user_search_user_id_users", ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_user_search_user_id", "user_search", ["user_id"])


def downgrade() -> None:
    op.drop_table("user_search")
    op.drop_index("ix_comments_parent_id", "comments")
    op.create_index("ix_comments_parent_id", "comments", ["parent_id"])
    op.drop_index("ix_comments_created_at_id", "comments")
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER delete_from_search")
        op.execute("DROP TABLE comment_search")
        op.execute("DROP TABLE IF EXISTS comment_search_content")  # as in 0008
    else:
        op.execute("DROP TABLE comment_search")
        op.execute("DROP FUNCTION comment_search_lexemes(tsvector, timestamptz)")
