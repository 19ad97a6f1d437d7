"""The search index of posts. After the upgrade, `env.py` fills it."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

SQLITE = (
    "CREATE VIRTUAL TABLE post_search USING fts5 (title, content, author, post_id UNINDEXED, "
    "version UNINDEXED, content='', contentless_delete=1, contentless_unindexed=1, "
    "tokenize=\"ascii tokenchars '-_'\")",
)
POSTGRES = (
    'CREATE TABLE post_search (post_id VARCHAR(21) COLLATE "C" NOT NULL, '
    "created_at TIMESTAMP WITH TIME ZONE NOT NULL, version INTEGER NOT NULL, text TEXT NOT NULL, "
    "words TSVECTOR NOT NULL, CONSTRAINT pk_post_search PRIMARY KEY (post_id), "
    "CONSTRAINT fk_post_search_post_id_posts FOREIGN KEY (post_id) REFERENCES posts (id) "
    "ON DELETE CASCADE)",
    "CREATE INDEX ix_post_search_created_at_post_id ON post_search (created_at, post_id)",
    "CREATE INDEX ix_post_search_words ON post_search USING gin (words)",
)


def upgrade() -> None:
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    for statement in SQLITE if on_sqlite else POSTGRES:
        op.execute(statement)


def downgrade() -> None:
    op.drop_table("post_search")
    # SQLite 3.53 does not drop this shadow table.
    op.execute("DROP TABLE IF EXISTS post_search_content")
