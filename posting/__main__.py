"""`python -m posting`: the `flask` command, with a one-line error for a mistake in `.env`.

The file of `--env-file` is checked like `.env`.
"""

from typing import Any

import click
from flask.cli import cli

from posting.config import StartError, check_env_file, check_env_files


def check_before_loading(env_file: click.Parameter) -> None:
    """Let the option `--env-file` check its file before it loads the variables."""
    load: Any = env_file.callback

    def check_and_load(context: click.Context, option: click.Parameter, path: Any) -> Any:
        try:
            if path is not None:
                check_env_file(path)
        except StartError as error:
            error.exit()
        return load(context, option, path)

    env_file.callback = check_and_load


if __name__ == "__main__":
    try:
        check_env_files()
    except StartError as error:
        error.exit()
    check_before_loading(next(option for option in cli.params if option.name == "env_file"))
    cli.main(prog_name="flask", default_map={"app": "posting.wsgi"})
