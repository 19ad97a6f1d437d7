"""Delivery of what is in the outbox, by a thread for each channel in each worker.

So a slow receiver delays only its own channel. A row is taken in one transaction, sent without one,
and deleted in another. So while the network waits, no lock is held, and the threads of requests do
not wait either. If the process is killed meanwhile, nothing is lost: another process sends this row
again, after the lease.
"""

import logging
import math
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
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
from posting.site import settings as site_settings

LEASE = timedelta(minutes=10)  # longer than any channel takes to send something
POLL_SECONDS = 10.0  # between two looks at what other processes have added, and at the time
NOTE_PAUSES = (1.0, 5.0, 20.0)  # seconds, while the database is too busy to note what was sent
STOP_SECONDS = 15.0  # in which a worker that ends may finish what it sends
DELIVERERS = "posting.outbox.deliverers"

log = logging.getLogger("posting.outbox")


class TemporaryError(Exception):
    """It could not be sent now, and may be sent later. The text says why."""


class PermanentError(Exception):
    """It cannot be sent, now or later. The text says why."""


class WaitError(Exception):
    """The receiver is failing, so the row waits until a time. This does not count as an attempt."""

    def __init__(self, until: datetime, reason: str) -> None:
        super().__init__(reason)
        self.until = until


class PauseError(Exception):
    """The channel sends nothing for some seconds.

    If its server takes nothing at all, the text says why. If a limit is reached, this holds for
    what is `ordinary`, and not for what is urgent.
    """

    def __init__(self, seconds: float, reason: str = "", *, ordinary: bool = False) -> None:
        super().__init__(reason)
        self.seconds = seconds
        self.ordinary = ordinary


class Channel(Protocol):
    """A way to send something. Its name is that in the rows."""

    name: str

    def plan(self) -> None:
        """Add to the outbox what is due by the clock, such as a daily mail."""

    def prepare(self, row: Row) -> Callable[[], None] | None:
        """Return a function that sends a row, or None if there is nothing to send any more.

        This runs in a unit of work, which has ended when the function is called. Both may raise
        WaitError, TemporaryError, PermanentError or PauseError.
        """

    def close(self) -> None:
        """Close connections, since nothing is due."""


class Deliverer:
    """The thread of a process that delivers what is in the outbox for a channel."""

    def __init__(self, app: Flask, channel: Channel) -> None:
        self._app = app
        self._channel = channel
        # When a paused channel goes on, and when it goes on with what is not urgent.
        self._resumes = 0.0
        self._ordinary_resumes = 0.0
        self._woken = Event()
        self._stops = Event()
        self._is_wanted: Callable[[], bool] = lambda: True
        self._thread: Thread | None = None

    def start(self, is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Begin to deliver in this process, as `start` of this module does."""
        self._is_wanted = is_wanted
        self._stops.clear()  # an earlier process has closed its connections before the fork
        name = f"outbox-{self._channel.name}"
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Let the thread look at once at what is due."""
        self._woken.set()

    def stop(self) -> None:
        """Ask the thread to end after what is being sent."""
        if self._thread:
            self._stops.set()
            self._woken.set()

    def join(self, seconds: float) -> None:
        """Wait until the thread has ended, unless this takes too long."""
        if self._thread:
            self._thread.join(seconds)

    def deliver_all(self) -> None:
        """Deliver what is due now, within an app context."""
        site_settings.refresh()  # mails have the name of the site
        try:
            planned = -math.inf
            while self._goes_on():
                if monotonic() - planned > POLL_SECONDS:
                    self._plan()
                    planned = monotonic()
                if not self._deliver_next():
                    return
        finally:
            self._channel.close()

    def _plan(self) -> None:
        """Add what is due by the clock. A failure does not stop the delivery of the rest."""
        try:
            self._channel.plan()
        except sa.exc.SQLAlchemyError as error:
            log.warning("%s waits for the database (%s).", self._channel.name, error_reason(error))
        except Exception:
            log.exception("%s could not plan what is due.", self._channel.name)

    def _goes_on(self) -> bool:
        return self._is_wanted() and not self._stops.is_set()

    def _run(self) -> None:
        while True:
            self._woken.clear()
            if not self._goes_on():
                return
            try:
                with self._app.app_context():
                    self.deliver_all()
            except sa.exc.SQLAlchemyError as error:
                log.warning("The outbox waits for the database (%s).", error_reason(error))
            except Exception:
                log.exception("The outbox could not deliver.")
            self._woken.wait(POLL_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311 - no secret

    def _deliver_next(self) -> bool:
        """Deliver what is due first. Return False if there was nothing."""
        channel, time = self._channel, monotonic()
        if self._resumes > time or not store.has_due(channel.name):
            return False
        is_limited = self._ordinary_resumes > time
        with unit_of_work():
            row = store.take(channel.name, LEASE, only_urgent=is_limited)
        if row is None:
            return False
        try:
            store.require_young(row)
            with unit_of_work():
                send = channel.prepare(row)
            if send:
                send()
        except store.TooOldError as error:
            self._note(partial(store.give_up, row, str(error)))
        except WaitError as wait:
            self._note(partial(store.wait, row, wait.until, str(wait)))
        except PauseError as pause:
            self._pause(pause)
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

    def _pause(self, pause: PauseError) -> None:
        """Let the channel send nothing, or nothing that is not urgent, for some seconds."""
        resumes = monotonic() + pause.seconds
        if pause.ordinary:
            self._ordinary_resumes = resumes
        else:
            self._resumes = resumes
        if reason := store.one_line(str(pause)):
            seconds = f"{pause.seconds:.0f} seconds"
            log.warning("%s waits for %s: %s", self._channel.name, seconds, reason)

    def _note(self, change: Callable[[], object]) -> None:
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


def note(row: Row, change: Callable[[], object]) -> None:
    """Note what became of a row. A failure to note it is logged, and has no other effect."""
    try:
        with unit_of_work():
            change()
    except sa.exc.SQLAlchemyError as error:
        reason = error_reason(error)
        log.warning("The result of %s %s is not noted (%s).", row.channel, row.id, reason)


def init_app(app: Flask, channels: Iterable[Channel]) -> None:
    """Let an app deliver by some channels, once `start` is called."""
    deliverers = app.extensions[DELIVERERS] = [Deliverer(app, channel) for channel in channels]
    on_close(app, partial(_stop, deliverers))


def start(app: Flask, is_wanted: Callable[[], bool] = lambda: True) -> None:
    """Begin to deliver in this process. Call it after the last fork.

    Nothing more is taken once `is_wanted` returns False, such as in a worker that is to end.
    """
    deliverers: Sequence[Deliverer] = app.extensions[DELIVERERS]
    for deliverer in deliverers:
        deliverer.start(is_wanted)
    app.extensions[store.WAKE] = [deliverer.wake for deliverer in deliverers]


def deliver_now() -> None:
    """Deliver what is due in the current thread."""
    deliverers: Sequence[Deliverer] = current_app.extensions[DELIVERERS]
    for deliverer in deliverers:
        deliverer.deliver_all()


def _stop(deliverers: Sequence[Deliverer]) -> None:
    """Stop the threads after what they are sending, unless this takes too long."""
    for deliverer in deliverers:
        deliverer.stop()
    end = monotonic() + STOP_SECONDS
    for deliverer in deliverers:
        deliverer.join(max(0.0, end - monotonic()))
