"""The search index on Postgres by years, so that words of other years are not looked up."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# The words of a post in 2026, such as 'engine', become '2026/engine', and its month is '2026/#11'.
LEXEMES = """
    CREATE FUNCTION post_search_lexemes(words tsvector, created_at timestamptz) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT array_to_tsvector(
            array_agg(year || '/' || lexeme) || (year || '/#' || month)
        )
        FROM unnest(words),
            cast(extract(year FROM created_at AT TIME ZONE 'UTC') AS int) AS year,
            cast(extract(month FROM created_at AT TIME ZONE 'UTC') AS int) AS month
        GROUP BY year, month
    $$"""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP INDEX ix_post_search_words")
        op.execute(LEXEMES)
        op.execute(
            "CREATE INDEX ix_post_search_lexemes ON post_search "
            "USING gin (post_search_lexemes(words, created_at))"
        )


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP INDEX ix_post_search_lexemes")
        op.execute("DROP FUNCTION post_search_lexemes(tsvector, timestamptz)")
        op.execute("CREATE INDEX ix_post_search_words ON post_search USING gin (words)")
