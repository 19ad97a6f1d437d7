"""Measure time on machines of different speed."""

import time


def seconds_of(call, *arguments, **options):
    """Return the CPU time of a call, and its result."""
    started = time.thread_time()
    result = call(*arguments, **options)
    return time.thread_time() - started, result


def slowness(clock=time.thread_time):
    """Return how much slower this machine is now than one that takes 6 ms for this work.

    With `time.perf_counter`, other processes make it slower too.
    """
    started = clock()
    sum(range(500_000))
    return max(1, (clock() - started) / 0.006)
