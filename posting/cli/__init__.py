"""The `flask` commands, a module for each group of them."""

from flask import Flask

from posting.cli import backup, demo, moderation, users


def init_app(app: Flask) -> None:
    for command in (
        users.users,
        moderation.moderation,
        demo.fill_with_demo,
        backup.back_up,
        backup.restore,
    ):
        app.cli.add_command(command)
