"""Measure time on machines of different speed."""

import re
import time


def seconds_of(call, *arguments, **options):
    """Return the CPU time of a call, and its result."""
    started = time.thread_time()
    result = call(*arguments, **options)
    return time.thread_time() - started, result


def slowness(clock=time.thread_time):
    """Return how much slower this machine is now than one that takes 6 ms for this work.

    The work is like that of requests: it uses the processor and some megabytes of memory, because
    a process beside this one may slow down only the memory. With `time.perf_counter`, other
    processes make it slower too.
    """
    started = clock()
    text = " ".join(str(number) for number in range(16_500))
    counts = {}
    for word in re.findall(r"[0-9]+", text):
        counts[word[::-1]] = counts.get(word[:3], 0) + 1
    sorted(counts)
    return max(1, (clock() - started) / 0.006)
