"""Numbers for Prometheus, which are counted when it asks."""

from collections.abc import Iterator
from contextlib import suppress

import prometheus_client
import sqlalchemy as sa
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from posting.accounts.store import count_applications
from posting.moderation.store import count_open_reports


class _Gauges(Collector):
    """Numbers of now. They need no folder of the workers, which all count the same rows."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        with suppress(sa.exc.SQLAlchemyError):  # the other metrics say why they are missing
            reports, applications = count_open_reports(), count_applications()
            yield GaugeMetricFamily("posting_open_reports", "Reports that are open", reports)
            name, text = "posting_pending_applications", "Accounts to approve"
            yield GaugeMetricFamily(name, text, applications)


def render_gauges() -> bytes:
    """Return the numbers in Prometheus's text format."""
    registry = prometheus_client.CollectorRegistry(auto_describe=False)
    registry.register(_Gauges())
    return prometheus_client.generate_latest(registry)
