"""Delivery of what is in the outbox, by a thread in each worker.

A row is taken in one transaction, sent without one, and deleted in another. So while the network
waits, no lock is held, and the threads of requests do not wait either. If the process is killed
meanwhile, nothing is lost: another process sends this row again, after the lease.
"""

import logging
import random
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from threading import Event, Thread
from time import monotonic
from typing import Protocol

import sqlalchemy as sa
from flask import Flask, current_app

from posting.db.engine import on_close
from posting.db.errors import error_reason
from posting.db.transactions import Row, unit_of_work
from posting.outbox import store

LEASE = timedelta(minutes=10)  # longer than any channel takes to send something
POLL_SECONDS = 10.0  # between two looks at what other processes have added, and at the time
NOTE_PAUSES = (1.0, 5.0, 20.0)  # seconds, while the database is too busy to note what was sent
STOP_SECONDS = 15.0  # in which a worker that ends may finish what it sends
DELIVERER = "posting.outbox.deliverer"

log = logging.getLogger("posting.outbox")


class TemporaryError(Exception):
    """It could not be sent now, and may be sent later. The text says why."""


class PermanentError(Exception):
    """It cannot be sent, now or later. The text says why."""


class PauseError(Exception):
    """The channel sends nothing for some seconds.

    Either its limit is reached, or its server takes nothing at all. Then the text says why.
    """

    def __init__(self, seconds: float, reason: str = "") -> None:
        super().__init__(reason)
        self.seconds = seconds


class Channel(Protocol):
    """A way to send something. Its name is that in the rows."""

    name: str

    def prepare(self, row: Row) -> Callable[[], None] | None:
        """Return a function that sends a row, or None if there is nothing to send any more.

        This runs in a unit of work, which has ended when the function is called. Both may raise
        TemporaryError, PermanentError or PauseError.
        """

    def rest(self) -> None:
        """Close connections, since nothing is due."""


class Deliverer:
    """The thread of a process that delivers what is in the outbox."""

    def __init__(self, app: Flask, channels: Iterable[Channel]) -> None:
        self._app = app
        self._channels = {channel.name: channel for channel in channels}
        self._resumes = dict.fromkeys(self._channels, 0.0)  # when paused channels go on
        self._woken = Event()
        self._stops = Event()
        self._is_wanted: Callable[[], bool] = lambda: True
        self._thread: Thread | None = None

    def start(self, is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Begin to deliver in this process, as `start` of this module does."""
        self._is_wanted = is_wanted
        self._stops.clear()  # an earlier process has closed its connections before the fork
        self._app.extensions[store.WAKE] = self._woken
        self._thread = Thread(target=self._run, name="outbox", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after what is being sent, unless this takes too long."""
        self._stops.set()
        self._woken.set()
        if self._thread:
            self._thread.join(STOP_SECONDS)

    def deliver_all(self) -> None:
        """Deliver what is due now, within an app context."""
        try:
            while self._goes_on() and self._deliver_some():
                pass
        finally:
            for channel in self._channels.values():
                channel.rest()

    def _goes_on(self) -> bool:
        return self._is_wanted() and not self._stops.is_set()

    def _run(self) -> None:
        while self._goes_on():
            self._woken.clear()
            try:
                with self._app.app_context():
                    self.deliver_all()
            except sa.exc.SQLAlchemyError as error:
                log.warning("The outbox waits for the database (%s).", error_reason(error))
            except Exception:
                log.exception("The outbox could not deliver.")
            self._woken.wait(POLL_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311 - no secret

    def _deliver_some(self) -> bool:
        """Deliver what is due first for each channel. Return whether there may be more."""
        time = monotonic()
        names = [name for name, resumes in self._resumes.items() if resumes <= time]
        if not names or not store.has_due(names):
            return False
        found = [self._deliver_next(self._channels[name]) for name in names]  # each gets its turn
        return any(found)

    def _deliver_next(self, channel: Channel) -> bool:
        """Deliver what is due first for a channel. Return False if there was nothing."""
        with unit_of_work():
            row = store.take(channel.name, LEASE)
        if row is None:
            return False
        try:
            with unit_of_work():
                send = channel.prepare(row)
            if send:
                send()
        except PauseError as pause:
            self._resumes[channel.name] = monotonic() + pause.seconds
            if reason := store.one_line(str(pause)):
                seconds = f"{pause.seconds:.0f} seconds"
                log.warning("%s waits for %s: %s", channel.name, seconds, reason)
            self._note(partial(store.put_back, row, str(pause)))
        except PermanentError as error:
            log.warning("%s %s is given up: %s", channel.name, row.id, store.one_line(str(error)))
            self._note(partial(store.give_up, row, str(error)))
        except TemporaryError as error:
            self._note(partial(_postpone, row, str(error)))
        except sa.exc.SQLAlchemyError as error:
            self._note(partial(_postpone, row, error_reason(error)))
        except Exception as error:
            log.exception("%s %s of kind %s failed.", channel.name, row.id, row.kind)
            self._note(partial(_postpone, row, type(error).__name__))
        else:
            self._note(partial(store.finish, row))
        return True

    def _note(self, change: Callable[[], None]) -> None:
        """Note how an attempt has ended. If the database stays too busy, it is sent again."""
        for pause in NOTE_PAUSES:
            try:
                with unit_of_work():
                    change()
            except sa.exc.SQLAlchemyError:
                self._stops.wait(pause)
            else:
                return
        with unit_of_work():
            change()


def _postpone(row: Row, error: str) -> None:
    if not store.postpone(row, error):
        log.warning(
            "%s %s is given up after two days: %s", row.channel, row.id, store.one_line(error)
        )


def init_app(app: Flask, channels: Iterable[Channel]) -> None:
    """Let an app deliver by some channels, if there are any, once `start` is called."""
    if found := [*channels]:
        deliverer = app.extensions[DELIVERER] = Deliverer(app, found)
        on_close(app, deliverer.stop)


def start(app: Flask, is_wanted: Callable[[], bool] = lambda: True) -> None:
    """Begin to deliver in this process, if the app has channels. Call it after the last fork.

    Nothing more is taken once `is_wanted` returns False, such as in a worker that is to end.
    """
    deliverer: Deliverer | None = app.extensions.get(DELIVERER)
    if deliverer:
        deliverer.start(is_wanted)


def deliver_now() -> bool:
    """Deliver what is due in the current thread. Return False if the app has no channels."""
    deliverer: Deliverer | None = current_app.extensions.get(DELIVERER)
    if deliverer is None:
        return False
    deliverer.deliver_all()
    return True
