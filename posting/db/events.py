"""Events: what a feature announces within the transaction that does it.

The app passes in who listens, so that a feature imports none of its listeners. A listener writes in
the same transaction, and an error of a listener is an error of the request.
"""

from collections.abc import Callable, Sequence
from typing import Any

from flask import Flask, current_app

EXTENSION = "posting.db.events"

# The class of an event, and the function that is called with it.
Listeners = Sequence[tuple[type[Any], Callable[[Any], None]]]


def init_app(app: Flask, listeners: Listeners) -> None:
    app.extensions[EXTENSION] = listeners


def announce(event: object) -> None:
    """Call the listeners of the class of an event, in their order."""
    listeners: Listeners = current_app.extensions[EXTENSION]
    for kind, listener in listeners:
        if isinstance(event, kind):
            listener(event)
