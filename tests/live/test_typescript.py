"""Programs in TypeScript, with types and schemas that are generated from the OpenAPI document."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import requests

from tests.live.clients import PASSWORD, sign_in
from tests.live.sites import require_programs

PROGRAMS = Path(__file__).parent / "typescript"
COMPILER = ("typescript@5.9.3", "@types/node@20.19.25")
OPTIONS = {
    "strict": True,
    "noUncheckedIndexedAccess": True,
    "module": "nodenext",
    "target": "es2022",
    "types": ["node"],
    "skipLibCheck": True,
}


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a command in a folder for packages of npm."""
    require_programs("node", "npm")
    (tmp_path / "package.json").write_text('{"type": "module", "private": true}')

    def run(*command, **environment):
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def server(serve):
    """A server for one program, so that a program finds only its own posts."""
    return serve()


@pytest.fixture
def install(run, server, tmp_path):
    """Return a function that installs packages, beside the document of the server."""

    def install(*packages):
        run("npm", "install", "--silent", "--no-audit", "--no-fund", *COMPILER, *packages)
        document = requests.get(f"{server.url}/openapi.json", timeout=20)
        (tmp_path / "openapi.json").write_bytes(document.content)

    return install


@pytest.fixture
def run_program(run, tmp_path):
    """Return a function that compiles and runs a program."""

    def run_program(name, **environment):
        shutil.copy(PROGRAMS / name, tmp_path)
        options = json.dumps({"compilerOptions": OPTIONS, "files": [name]})
        (tmp_path / "tsconfig.json").write_text(options)
        run("npx", "tsc", "--project", ".")
        assert run("node", name.replace(".ts", ".js"), **environment) == "done\n"

    return run_program


def test_a_program_with_generated_types_compiles_and_works(server, install, run, run_program):
    url = server.url
    ada = sign_in(url, "ada")
    token = ada.post(f"{url}/tokens", json={"name": "TypeScript", "scope": "write"}, timeout=20)
    install("openapi-typescript@7.13.0", "openapi-fetch@0.17.0")
    run("npx", "openapi-typescript", "openapi.json", "--output", "api.ts")
    run_program("client.ts", POSTING_URL=url, POSTING_TOKEN=token.json()["token"])


def test_a_program_with_generated_schemas_compiles_and_works(
    server, install, run, run_program, tmp_path
):
    install("orval@7.21.0", "zod@4.6.7")  # later versions forgive more
    shutil.copy(PROGRAMS / "orval.config.js", tmp_path)
    run("npx", "orval")
    run_program("zod.ts", POSTING_URL=server.url, POSTING_PASSWORD=PASSWORD)
