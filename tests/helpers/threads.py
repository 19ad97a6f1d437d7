"""Threads that run at the same time as a request."""

from concurrent.futures import ThreadPoolExecutor


def in_thread(function, *arguments, **options):
    """Return the result of a function that runs in a thread, with contexts of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments, **options).result()
