"""Gauges for Prometheus: numbers that features count when Prometheus asks for the metrics."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

import prometheus_client
import sqlalchemy as sa
from flask import Flask, current_app
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

EXTENSION = "posting.gauges"


class Gauge(NamedTuple):
    """A number of now, and what it counts."""

    text: str
    read: Callable[[], int]


class _Gauges(Collector):
    """The gauges of the app. They need no folder of the workers, which all count the same rows."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        gauges: Mapping[str, Gauge] = current_app.extensions[EXTENSION]
        with suppress(sa.exc.SQLAlchemyError):  # the other metrics say why they are missing
            for name, gauge in gauges.items():
                yield GaugeMetricFamily(name, gauge.text, value=gauge.read())


def init_app(app: Flask, gauges: Mapping[str, Gauge]) -> None:
    """Keep the gauges of the features, by the names of their metrics."""
    app.extensions[EXTENSION] = gauges


def render_gauges() -> bytes:
    """Return the gauges in Prometheus's text format."""
    registry = prometheus_client.CollectorRegistry(auto_describe=False)
    registry.register(_Gauges())
    return prometheus_client.generate_latest(registry)
