"""Failures of the renderer of Markdown, which the service logs instead of failing."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_failures() -> Iterator[None]:
    """Fail if a text cannot be rendered in the block. Unlike `caplog`, this works in Hypothesis."""
    failures: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: failures.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("posting.markdown")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
    assert failures == [], failures
