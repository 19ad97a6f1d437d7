"""A program in TypeScript, whose types are generated from the OpenAPI document."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import requests

from tests.live.clients import sign_in
from tests.live.sites import require_programs

CLIENT = Path(__file__).parent / "typescript" / "client.ts"
PACKAGES = (
    "openapi-typescript@7.13.0",
    "openapi-fetch@0.17.0",
    "typescript@5.9.3",
    "@types/node@20.19.25",
)
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
    """Return a function that runs a program in a folder with the packages of npm."""
    require_programs("node", "npm")
    (tmp_path / "package.json").write_text('{"type": "module", "private": true}')
    (tmp_path / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": OPTIONS, "files": ["client.ts"]})
    )

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

    run("npm", "install", "--silent", "--no-audit", "--no-fund", *PACKAGES)
    return run


def test_a_generated_client_compiles_and_works(shared_server, run, tmp_path):
    url = shared_server.url
    ada = sign_in(url, "ada")
    token = ada.post(f"{url}/tokens", json={"name": "TypeScript", "scope": "write"}, timeout=20)
    document = requests.get(f"{url}/openapi.json", timeout=20)
    (tmp_path / "openapi.json").write_bytes(document.content)
    shutil.copy(CLIENT, tmp_path)
    run("npx", "openapi-typescript", "openapi.json", "--output", "api.ts")
    run("npx", "tsc", "--project", ".")
    done = run("node", "client.js", POSTING_URL=url, POSTING_TOKEN=token.json()["token"])
    assert done == "done\n"
