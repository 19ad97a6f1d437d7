"""The schema's versions: up, down, and the same as the models say."""

import gzip
import os
import re
import subprocess
import sys
from itertools import pairwise

import flask_migrate
import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations

from posting import create_app
from posting.config import StartError
from posting.db.engine import Base, db
from posting.db.migrations import FOLDER, VERSIONS, is_current, newest, schema_change
from posting.db.models import ModerationAct, Post, RateWindow, Session, User
from posting.db.types import now
from posting.ops import archive
from tests.conftest import POSTGRES
from tests.helpers import ROOT

# SQLAlchemy cannot reflect SQLite's index on lower(username); `indexes` below reads its SQL.
pytestmark = pytest.mark.filterwarnings("ignore:Skipped unsupported reflection")
NAMES = re.compile(
    r"(pk|uq|ix|ck|fk)_(users|sessions|posts|comments|images|image_data|idempotency_keys|rate_windows|moderation_acts)(_\w+)?|alembic_version_pkc"
)


@pytest.fixture
def start(empty_url, tmp_path):
    """Run Python on a database of its own, with `wsgi.py` at hand; return what came of it."""

    def start(*arguments, **environment):
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=os.environ | {"POSTING_DATABASE_URL": empty_url} | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return start


@pytest.fixture
def flask(start):
    def flask(*arguments):
        result = start("-m", "flask", *arguments)
        assert result.returncode == 0, result.stderr
        return result

    return flask


@pytest.fixture
def migrated(flask, empty_url):
    """An app on a database that went through all versions."""
    flask("db", "upgrade")
    app = create_app({"TESTING": True, "DATABASE_URL": empty_url})
    with app.app_context():
        yield app
        db.session.remove()
        db.engine.dispose()


def schema(engine):
    """Return what a database knows of its schema, comparable between two of them."""
    inspector = sa.inspect(engine)
    return {
        table: {
            "columns": {
                column["name"]: (str(column["type"]), column["nullable"], column["default"])
                for column in inspector.get_columns(table)
            },
            "key": inspector.get_pk_constraint(table)["name"],
            "foreign": {
                (key["name"], *key["constrained_columns"], key["options"].get("ondelete"))
                for key in inspector.get_foreign_keys(table)
            },
            "unique": {key["name"] for key in inspector.get_unique_constraints(table)},
            "checks": {
                (check["name"], re.sub(r"[()\s]|::\w+( varying)?", "", check["sqltext"]))
                for check in inspector.get_check_constraints(table)
            },
        }
        for table in inspector.get_table_names()
        if table != "alembic_version"
    } | {"indexes": indexes(engine)}


def indexes(engine):
    statement = (
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'"
        if engine.dialect.name == "postgresql"
        else "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    )
    with engine.connect() as connection:
        found = connection.exec_driver_sql(statement).scalars()
        return {sql for sql in found if "alembic" not in sql}


def test_the_versions_lead_to_what_the_models_say(migrated):
    by_versions = schema(db.engine)
    Base.metadata.drop_all(db.engine)
    Base.metadata.create_all(db.engine)
    assert by_versions == schema(db.engine)
    assert by_versions.keys() == set(Base.metadata.tables) | {"indexes"}


def test_everything_is_named_by_the_convention(migrated):
    inspector = sa.inspect(db.engine)
    for table in inspector.get_table_names():
        named = [
            inspector.get_pk_constraint(table),
            *inspector.get_foreign_keys(table),
            *inspector.get_unique_constraints(table),
            *inspector.get_check_constraints(table),
        ]
        for constraint in named:
            assert NAMES.fullmatch(constraint["name"] or "alembic_version_pkc"), constraint
    assert all(NAMES.search(sql) for sql in indexes(db.engine))


def test_down_and_up_again(flask, empty_url):
    flask("db", "upgrade")
    assert "Running downgrade" in flask("db", "downgrade", "base").stderr
    engine = sa.create_engine(empty_url.replace("postgresql:", "postgresql+psycopg:"))
    assert sa.inspect(engine).get_table_names() == ["alembic_version"]
    engine.dispose()
    flask("db", "upgrade")
    assert newest() in flask("db", "current").stdout


def test_each_version_goes_down_and_up_again_with_rows_in_it(migrated, tmp_path):
    """Whatever is not of the version itself stays to the letter, and so does each schema."""
    versions = ["base", *sorted(path.stem[:4] for path in (FOLDER / "versions").glob("0*.py"))]
    flask_migrate.downgrade(revision="base")
    fresh = {"base": schema(db.engine)}
    for version in versions[1:]:
        flask_migrate.upgrade(revision=version)
        fresh[version] = schema(db.engine)
    fill(tmp_path / "archive")
    for older, newer in reversed([*pairwise(versions)]):
        before = rows(db.engine)
        assert all(before.values())
        if newer == "0002":  # which makes comments, and counts none when they are gone
            before["posts"] = [row | {"comment_count": 0} for row in before["posts"]]
        flask_migrate.downgrade(revision=older)
        left = rows(db.engine)
        assert schema(db.engine) == fresh[older]
        assert left == alike(before, left)
        flask_migrate.upgrade(revision=newer)
        assert schema(db.engine) == fresh[newer]
        assert left == alike(rows(db.engine), left)
        flask_migrate.downgrade(revision=older)


def fill(path):
    """Put rows into each table: the example of docs/archive.md, and what it has none of."""
    document = (ROOT / "docs" / "archive.md").read_text()
    [example] = re.findall(r"```json\n(.*?)```", document, re.DOTALL)
    path.write_bytes(gzip.compress(example.encode()))
    archive.read(path)
    ada = db.session.scalars(User.named("ada")).one()
    ada.suspended_at = now()
    db.session.add_all(
        [
            Session(user=ada, token_hash="x", user_agent="x"),
            RateWindow(key="x", hits=1, ends_at=now()),
            ModerationAct(moderator="grace", act="suspend", target="ada"),
        ]
    )
    db.session.commit()


def rows(engine):
    """Return the rows of each table."""
    with engine.connect() as connection:
        return {
            table: [
                dict(row)
                for row in connection.execute(
                    sa.text(f"SELECT * FROM {table} ORDER BY 1")
                ).mappings()
            ]
            for table in sa.inspect(connection).get_table_names()
            if table != "alembic_version"
        }


def alike(found, others):
    """Return of the found rows the tables and columns alone that others have."""
    return {
        table: [{name: row[name] for name in kept[0]} for row in found[table]]
        for table, kept in others.items()
        if kept
    }


def test_upgrading_twice_is_upgrading_once(flask):
    flask("db", "upgrade")
    again = flask("db", "upgrade")
    assert "Running upgrade" not in again.stderr
    assert again.stdout == f"The database schema is up to date ({newest()}).\n"


def test_a_rebuilt_parent_keeps_its_children(migrated):
    db.session.add(User(id="a" * 21, username="ada", password_hash="x"))
    db.session.flush()
    db.session.add(Post(title="x", content="x", author_id="a" * 21))
    db.session.commit()
    with schema_change(db.engine) as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("users", recreate="always" if not POSTGRES else "auto"):
            pass
    assert db.session.scalar(sa.select(Post.author_id)) == "a" * 21
    db.session.add(Post(title="x", content="x", author_id="b" * 21))
    with pytest.raises(sa.exc.IntegrityError):
        db.session.flush()


@pytest.mark.skipif(bool(POSTGRES), reason="Postgres enforces foreign keys all along")
def test_an_upgrade_that_breaks_foreign_keys_is_undone(migrated):
    with pytest.raises(StartError, match="foreign keys"), schema_change(db.engine) as connection:
        connection.execute(
            sa.insert(Post).values(title="x", content="x", author_id="b" * 21, version=1)
        )
    assert db.session.scalar(sa.select(sa.func.count(Post.id))) == 0


def test_in_memory_the_schema_is_there_and_current():
    app = create_app({"TESTING": True, "DATABASE_URL": "sqlite://"})
    with app.app_context():
        assert is_current()
    assert app.test_client().get("/readyz").status_code == 200


class TestStart:
    """What an operator sees: one line that says what to do, and no traceback."""

    def stopped(self, result, *words, code=3):
        assert result.returncode == code, result.stderr
        [line] = result.stderr.splitlines()
        assert line.startswith("posting: ")
        for word in words:
            assert word in line

    @pytest.mark.skipif(not POSTGRES, reason="a new SQLite database migrates itself")
    def test_a_new_postgres_wants_an_upgrade(self, start):
        self.stopped(start("wsgi.py"), "flask db upgrade")

    @pytest.mark.skipif(bool(POSTGRES), reason="Postgres wants an upgrade")
    def test_a_new_sqlite_database_migrates_itself(self, start, flask):
        assert start("wsgi.py").returncode == 0
        assert newest() in flask("db", "current").stdout

    def stamp(self, version):
        with db.engine.begin() as connection:
            connection.execute(VERSIONS.update().values(version_num=version))

    def test_an_old_schema_wants_an_upgrade(self, start, migrated):
        self.stamp("0001")
        self.stopped(start("wsgi.py"), "flask db upgrade")

    def test_a_newer_schema_wants_its_own_code(self, start, migrated, tmp_path):
        self.stamp("9999")
        told = "The database has schema 9999, which this version does not know: newer code made it."
        self.stopped(start("wsgi.py"), told, "Install that version.")
        for command in ("export", "import"):
            result = start("-m", "flask", command, str(tmp_path / "archive"))
            assert (result.returncode, result.stdout) == (1, "")
            assert result.stderr.startswith(f"Error: {told}")

    def test_a_database_that_is_away_is_told(self, start):
        url = "postgresql://postgres:hidden@127.0.0.1:9/nothing"
        result = start("wsgi.py", POSTING_DATABASE_URL=url)
        self.stopped(result, "POSTING_DATABASE_URL", "127.0.0.1", code=1)  # to be tried again
        assert "hidden" not in result.stderr

    def test_an_upgrade_of_a_database_that_is_away_is_told(self, start):
        url = "postgresql://postgres@127.0.0.1:9/nothing"
        result = start("-m", "flask", "db", "upgrade", POSTING_DATABASE_URL=url)
        assert result.returncode == 1
        [line] = result.stderr.splitlines()
        assert line.startswith("Error: The database postgresql+psycopg://postgres@127.0.0.1:9")

    def test_a_file_that_is_no_database_is_told(self, start, tmp_path):
        file = tmp_path / "file"
        file.write_text("This is no database, whatever the settings say. " * 99)
        result = start("wsgi.py", POSTING_DATABASE_URL=f"sqlite:///{file}")
        self.stopped(result, "not a database", str(file))

    def test_a_missing_folder_is_named(self, start, tmp_path):
        folder = tmp_path / "nowhere"
        url = f"sqlite:///{folder}/posting.db"
        told = f"There is no folder {folder} for the database."
        self.stopped(start("wsgi.py", POSTING_DATABASE_URL=url), told, "POSTING_DATABASE_URL")
        upgrade = start("-m", "flask", "db", "upgrade", POSTING_DATABASE_URL=url)
        assert (upgrade.returncode, upgrade.stderr.count("\n")) == (1, 1)
        assert upgrade.stderr.startswith(f"Error: {told}")

    def test_a_wrong_number_for_gunicorn_is_told(self, start):
        result = start("deploy/serve.py", MAX_REQUESTS="many")
        self.stopped(result, "MAX_REQUESTS must be a whole number", "'many'")

    def test_a_wrong_setting_is_told(self, start):
        result = start("wsgi.py", POSTING_PROXY_HOPS="many")
        self.stopped(result, "POSTING_PROXY_HOPS", "'many'")

    def test_gunicorn_gives_up_at_once(self, start):
        result = start("deploy/serve.py", POSTING_PASSWORD_MIN="3", PORT="0")
        assert result.returncode != 0
        assert "posting: POSTING_PASSWORD_MIN must be" in result.stderr
        assert "Traceback" not in result.stderr
