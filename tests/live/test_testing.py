"""The pytest plugin, in test suites that run in their own pytest process and folder."""

import os
import re
import subprocess
import sys

import pytest

from tests.helpers import ROOT

LIGHT = ["-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:hypothesispytest"]


@pytest.fixture
def run(pytester, monkeypatch):
    """Run a test suite with Posting installed and warnings as errors."""
    information = pytester.mkdir("installed") / "other_posting-0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: x-posting\nVersion: 0\n")
    setup = (ROOT / "setup.cfg").read_text()
    [entry_point] = [line for line in setup.splitlines() if line.endswith("= posting.testing")]
    (information / "entry_points.txt").write_text(f"[pytest11]\n{entry_point.strip()}\n")
    monkeypatch.setenv("PYTHONPATH", f"{information.parent}{os.pathsep}{ROOT}")
    for name in [*os.environ]:
        if name.startswith(("POSTING_", "PYTEST_XDIST")):
            monkeypatch.delenv(name)

    def run(suite, *arguments, **outcomes):
        pytester.makepyfile(suite)
        result = pytester.runpytest_subprocess("-W", "error", *LIGHT, *arguments)
        result.assert_outcomes(**outcomes)
        return result

    return run


def test_each_test_starts_from_an_empty_database(run):
    suite = """
        import pytest

        @pytest.mark.parametrize("_", range(3))
        def test_posts(posting_sign_in, posting_client, posting_moderator, _):
            assert posting_client.get("/posts").json == []
            ada = posting_sign_in("ada", display_name="Ada")
            assert ada.user["display_name"] == "Ada"
            assert posting_sign_in("ada").user == ada.user
            post = ada.post("/posts", json={"title": "Hello", "content": "World"})
            assert posting_client.get(post.headers["Location"]).json == post.json
            assert posting_client.delete(post.headers["Location"]).status_code == 401
            assert posting_moderator.user["role"] == "moderator"
            assert posting_moderator.delete(post.headers["Location"]).status_code == 204

        @pytest.mark.parametrize(
            "account", [{"username": "?"}, {"bio": "x" * 501}, {"role": "admin"}, {"password": "x"}]
        )
        def test_an_invalid_account(posting_sign_in, account):
            with pytest.raises(ValueError, match=next(iter(account))):
                posting_sign_in(**{"username": "ada"} | account)
    """
    run(suite, passed=7)


def test_accounts_with_roles_passwords_and_tokens(run):
    suite = """
        import pytest
        from posting.db.base import db
        from posting.accounts.models import User
        from posting.testbed import PASSWORD

        POST = {"title": "Hello", "content": "World"}

        def test_a_moderator_by_any_name(posting_sign_in):
            path = posting_sign_in("ada").post("/posts", json=POST).headers["Location"]
            grace = posting_sign_in("grace", role="moderator", display_name="Grace")
            assert grace.user["role"] == "moderator"
            assert grace.user == grace.get("/users/me").json
            assert posting_sign_in("Grace").user == grace.user
            assert grace.delete(path).status_code == 204

        def test_a_member_becomes_a_moderator_and_a_member_again(posting_sign_in):
            ada = posting_sign_in("ada")
            assert ada.user["role"] == "member"
            assert posting_sign_in("ada", role="moderator").user["id"] == ada.user["id"]
            assert ada.get("/users/me").json["role"] == "moderator"
            assert posting_sign_in("ada", role="member").user == ada.user

        def test_the_password(posting_sign_in, posting_client):
            posting_sign_in("ada")
            credentials = {"username": "ada", "password": PASSWORD}
            assert posting_client.post("/signin", json=credentials).status_code == 200

        def test_a_program_may_write(posting_client, posting_authorization):
            sent = posting_client.post("/posts", json=POST, headers=posting_authorization)
            assert sent.status_code == 201
            assert posting_client.get("/sessions", headers=posting_authorization).status_code == 403
            assert posting_client.post("/posts", json=POST).status_code == 401

        def test_a_program_of_any_user_may_only_read(posting_client, posting_sign_in):
            ada = posting_sign_in("ada")
            headers = ada.authorization(scope="read")
            assert posting_client.get("/users/me", headers=headers).json == ada.user
            assert posting_client.post("/posts", json=POST, headers=headers).status_code == 403
            with pytest.raises(ValueError, match="scope"):
                ada.authorization(scope="admin")
            with pytest.raises(ValueError, match="Sign in first"):
                posting_client.authorization()

        def test_within_a_context_and_its_transaction(posting_app, posting_sign_in):
            with posting_app.app_context():
                assert db.session.query(User).count() == 0
                assert posting_sign_in("ada", role="moderator").user["role"] == "moderator"
                assert db.session.query(User).count() == 1
    """
    run(suite, passed=6)


LIVE = """
    from concurrent.futures import ThreadPoolExecutor

    import pytest
    import requests

    @pytest.fixture
    def api(posting_server):
        return f"{posting_server.url}/posts"

    @pytest.mark.parametrize("_", range(2))
    def test_posts_over_http(api, posting_app, posting_server, posting_sign_in, _):
        assert posting_app is posting_server.app
        assert requests.get(api, timeout=10).json() == []
        cookies = {"session": posting_sign_in("ada").get_cookie("session").value}

        def post(number):
            body = {"title": f"Number {number}", "content": "x"}
            return requests.post(api, json=body, cookies=cookies, timeout=10).status_code

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(post, range(24))) == {201}
        titles = {post["title"] for post in requests.get(f"{api}?limit=100", timeout=10).json()}
        assert titles == {f"Number {number}" for number in range(24)}

    def test_without_a_server(posting_client):
        assert posting_client.get("/posts").json == []
"""


def test_a_live_server_shares_its_database_with_the_clients(run):
    run(LIVE, passed=3)


def test_a_named_database(run, pytester, empty_url):
    pytester.makeini(f"[pytest]\nposting_database_url = {empty_url}\n")
    suite = f"""{LIVE}
    from posting.db.engine import sqlite_file, url_without_password

    def test_database(posting_app):
        with posting_app.app_context():
            found = sqlite_file() or url_without_password()
        assert str(found).endswith("{empty_url.partition("///")[2]}")
    """
    run(suite, passed=4)
    run(suite, passed=4)  # again, on the data of the first run


@pytest.mark.parametrize("name", ["posting.db", "contest.db", "latest.db"])
def test_a_database_that_may_not_be_for_tests_is_refused(run, pytester, tmp_path, name):
    path = tmp_path / name
    pytester.makeini(f"[pytest]\nposting_database_url = sqlite:///{path}\n")
    result = run("def test(posting_client): pass", errors=1)
    result.stdout.fnmatch_lines("*Tests delete all data in their database. Use a database*")
    result.stdout.no_fnmatch_line("*Traceback*")
    assert not path.exists()


def test_environment_variables_have_no_effect(run, monkeypatch):
    monkeypatch.setenv("POSTING_SIGNUP", "closed")
    monkeypatch.setenv("POSTING_PUBLIC_URL", "https://example.org")
    run("def test(posting_sign_in): posting_sign_in('ada').get_cookie('session')", passed=1)


def test_xdist_workers_have_their_own_databases(run, pytester, tmp_path):
    suite = """
        import pytest

        @pytest.mark.parametrize("_", range(12))
        def test_posts(posting_sign_in, posting_client, _):
            assert posting_client.get("/posts").json == []
            posting_sign_in("ada").post("/posts", json={"title": "Hello", "content": "World"})
            assert len(posting_client.get("/posts").json) == 1
    """
    run(suite, "-n", "2", passed=12)
    pytester.makeini(f"[pytest]\nposting_database_url = sqlite:///{tmp_path}/test-{{worker}}.db\n")
    run(suite, "-n", "2", passed=12)
    run(suite, passed=12)
    names = {path.name for path in tmp_path.glob("test-*.db")}
    assert names == {"test-gw0.db", "test-gw1.db", "test-main.db"}
    pytester.makeini(f"[pytest]\nposting_database_url = sqlite:///{tmp_path}/test.db\n")
    result = run(suite, "-n", "2", errors=12)
    result.stdout.fnmatch_lines("*must contain {worker}*")


def test_settings_and_the_database_can_be_overridden(run, pytester, tmp_path):
    pytester.makeconftest(f"""
        import pytest

        @pytest.fixture(scope="session")
        def posting_settings():
            return {{"SIGNUP": "closed", "PUBLIC_URL": "https://example.org"}}

        @pytest.fixture(scope="session")
        def posting_database_url():
            return "sqlite:///{tmp_path}/own-test.db"
    """)
    suite = """
        def test_settings(posting_client):
            account = {"username": "ada", "password": "a long walk by the sea"}
            response = posting_client.post("/signup", json=account, base_url="https://example.org")
            assert response.json["detail"] == "Sign-up is closed."
    """
    run(suite, passed=1)
    assert (tmp_path / "own-test.db").exists()


MARKED = """
    import pytest
    import requests
    from flask.logging import default_handler

    ACCOUNT = {"username": "ada", "password": "a long walk by the sea"}

    def sign_up(client):
        return client.post("/signup", json=ACCOUNT).status_code

    @pytest.mark.parametrize("_", range(2))
    def test_defaults(posting_app, posting_client, posting_server, _):
        assert posting_app is posting_server.app
        assert sign_up(posting_client) == 201
        assert posting_client.get("/").status_code == 200
        assert type(default_handler.formatter).__name__ == "TextFormatter"

    @pytest.mark.posting_settings(SIGNUP="closed", PASSWORD_MIN=64, LIMIT_SIGNUP="1/hour")
    class TestMarked:
        @pytest.mark.parametrize("_", range(2))
        def test_of_a_class(self, posting_client, posting_sign_in, _):
            assert sign_up(posting_client) == 403
            assert posting_sign_in("ada").user["username"] == "ada"  # whatever the settings

        @pytest.mark.posting_settings({"SIGNUP": "open"}, PASSWORD_MIN=8, RATE_LIMITS="on")
        def test_the_closest_wins(self, posting_client, posting_sign_in):
            posting_sign_in("bob")
            posting_sign_in("eve")
            assert [sign_up(posting_client) for _ in range(2)] == [201, 429]

    @pytest.mark.posting_settings(PAGES="off", LOG_FORMAT="json")
    def test_settings_that_are_read_at_the_start(posting_client):
        assert posting_client.get("/").status_code == 302
        assert type(default_handler.formatter).__name__ == "JsonFormatter"

    @pytest.mark.posting_settings(SIGNUP="closed")
    @pytest.mark.parametrize("_", range(2))
    def test_a_server(posting_server, posting_sign_in, _):
        url = posting_server.url
        assert requests.post(f"{url}/signup", json=ACCOUNT, timeout=10).status_code == 403
        headers = posting_sign_in("ada").authorization()
        assert requests.get(f"{url}/users/me", headers=headers, timeout=10).status_code == 200

    @pytest.mark.posting_settings(PUBLIC_URL="https://example.org")
    def test_secure_cookies(posting_sign_in):
        assert posting_sign_in("ada").get_cookie("__Host-session")
        assert posting_sign_in("ada").authorization()

    class TestOverridden:
        @pytest.fixture
        def posting_settings(self):
            return {"SIGNUP": "closed"}

        def test_override_in_a_class(self, posting_client):
            assert sign_up(posting_client) == 403

        @pytest.mark.posting_settings(SIGNUP="open")
        def test_a_marker_wins_over_the_fixture(self, posting_client):
            assert sign_up(posting_client) == 201

    @pytest.mark.parametrize("posting_settings", [{"SIGNUP": "closed"}, {}])
    def test_parametrized(posting_client, posting_settings):
        assert sign_up(posting_client) == (403 if posting_settings else 201)
"""


def test_settings_for_one_test(run, pytester, empty_url):
    run(MARKED, "--strict-markers", passed=13)
    pytester.makeini(f"[pytest]\nposting_database_url = {empty_url}\n")
    run(MARKED, "--strict-markers", passed=13)


def test_an_invalid_setting_for_one_test(run):
    suite = """
        import pytest

        @pytest.mark.posting_settings(SIGNUPS="closed")
        def test_unknown(posting_client): pass

        @pytest.mark.posting_settings(SIGNUP="maybe")
        def test_invalid(posting_client): pass

        def test_others(posting_client):
            assert posting_client.get("/posts").json == []
    """
    result = run(suite, errors=2, passed=1)
    result.stdout.fnmatch_lines_random(["*did you mean SIGNUP?*", "*SIGNUP must be one of: *"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_fixture_names_do_not_collide(run, pytester):
    names = (
        "app client sign_in server live_server moderator settings database_url testbed anonymous"
    )
    pytester.makeconftest(
        "import pytest\npytest_plugins = ['posting.testing']\n"  # both installed and listed
        + "".join(f"@pytest.fixture\ndef {name}(): return '{name}'\n" for name in names.split())
    )
    arguments = ", ".join(names.split())
    suite = f"""
        def test_fixtures_of_the_suite({arguments}, posting_client):
            assert [{arguments}] == {names.split()}
            assert posting_client.get("/healthz").status_code == 200

        def test_all_fixtures_have_a_prefix(request):
            plugin = request.config.pluginmanager.get_plugin("posting.testing")
            kind = type(plugin.posting_server)
            fixtures = [name for name, value in vars(plugin).items() if isinstance(value, kind)]
            assert len(fixtures) > 6
            assert {{name.lstrip("_").partition("_")[0] for name in fixtures}} == {{"posting"}}
    """
    run(suite, passed=2)


def test_a_run_without_fixtures_does_not_import_the_package(run):
    suite = """
        import sys

        def test_imports():
            loaded = {name for name in sys.modules if name.partition(".")[0] == "posting"}
            assert loaded == {"posting", "posting.testing"}
    """
    run(suite, passed=1)
    heavy = {"flask", "werkzeug", "sqlalchemy", "marshmallow", "PIL", "posting.app"}
    imports = f"import sys, posting.testing; sys.exit(bool({heavy!r} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", imports], cwd=ROOT, check=False).returncode == 0


def test_requesting_the_server_too_late_fails(run):
    suite = """
        def test_late(posting_client, request):
            request.getfixturevalue("posting_server")
    """
    result = run(suite, failed=1)
    result.stdout.fnmatch_lines("*Request it as an argument*")


def test_the_example_of_the_documentation_works(run):
    document = (ROOT / "docs" / "testing.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
    run(example, passed=4)
