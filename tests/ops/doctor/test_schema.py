"""A schema that is not that of the models, although its revision is current."""

import re
from pathlib import Path

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.transactions import transaction
from tests.conftest import POSTGRES
from tests.helpers.doctor import GOOD, only_problem, problems

on_postgres = pytest.mark.skipif(not POSTGRES, reason="SQLite has no such statement")


@pytest.fixture
def changed(make_app, fresh_url):
    """Return a function that changes the schema of a healthy service of its own."""
    app = make_app(DATABASE_URL=fresh_url, **GOOD)
    if not POSTGRES:
        Path(fresh_url.removeprefix("sqlite:///")).chmod(0o600)

    def change(*statements):
        with app.app_context(), transaction() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)
        return app

    return change


@pytest.mark.parametrize(
    "name", ["uq_users_username", "ix_users_moderators", "ix_comments_post_id_created_at_id"]
)
def test_a_missing_index_is_a_failure_until_the_fix_is_run(changed, name):
    app = changed(f"DROP INDEX {name}")
    fix = only_problem(app, "failure", f"missing or wrong, such as index {name}")
    create = re.search(rf"CREATE (UNIQUE )?INDEX {name} ON .*", fix)[0]
    assert problems(changed(create)) == []


def test_an_index_that_is_not_unique_is_a_failure(changed):
    """Otherwise two people could sign up with one name."""
    app = changed(
        "DROP INDEX uq_users_username", "CREATE INDEX uq_users_username ON users (lower(username))"
    )
    fix = only_problem(app, "failure", "index uq_users_username")
    assert "; CREATE UNIQUE INDEX uq_users_username ON users" in fix


@on_postgres
def test_an_index_that_is_not_valid_is_a_failure(changed):
    app = changed(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'uq_users_username'::regclass"
    )
    fix = only_problem(app, "failure", "index uq_users_username")
    assert "DROP INDEX IF EXISTS uq_users_username; CREATE UNIQUE INDEX uq_users_username" in fix


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("ALTER TABLE images DROP COLUMN edited_at", "column images.edited_at"),
        pytest.param(
            "DROP TRIGGER delete_from_search",
            "trigger delete_from_search",
            marks=pytest.mark.skipif(bool(POSTGRES), reason="Postgres has a foreign key"),
        ),
        *(
            pytest.param(statement, part, marks=on_postgres)
            for statement, part in (
                ("ALTER TABLE posts ALTER COLUMN title DROP NOT NULL", "column posts.title"),
                ("ALTER TABLE posts ALTER COLUMN title TYPE text", "column posts.title"),
                (
                    "ALTER TABLE rate_windows DROP CONSTRAINT pk_rate_windows",
                    "primary key of rate_windows",
                ),
                (
                    "ALTER TABLE sessions DROP CONSTRAINT fk_sessions_user_id_users",
                    "constraint fk_sessions_user_id_users",
                ),
                (
                    "ALTER TABLE posts DROP CONSTRAINT ck_posts_title_length",
                    "constraint ck_posts_title_length",
                ),
            )
        ),
    ],
)
def test_another_difference_is_a_failure(changed, statement, part):
    app = changed(statement)
    [*_, (level, message)] = [found for found in problems(app) if "schema" in found[1]]
    assert (level, part in message) == ("failure", True)


def test_additions_of_an_operator_are_ok(changed):
    app = changed(
        "CREATE INDEX my_index ON posts (title)",
        "CREATE TABLE my_table (id integer)",
        "ALTER TABLE posts ADD COLUMN my_column integer",
    )
    assert problems(app) == []
    with app.app_context():
        assert sa.inspect(db.engine).has_table("my_table")
