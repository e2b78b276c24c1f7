"""Reading a page of metrics as Prometheus does."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from taskqueue.monitoring.metrics import exposition

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(page: bytes) -> Samples:
    """Each sample by its name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def scrape() -> Samples:
    """What the database says now."""
    return read(exposition()[0])


def value(samples: Samples, name: str, /, **labels: str) -> float:
    """One sample."""
    return samples[f"taskqueue_{name}", tuple(sorted(labels.items()))]


def total(samples: Samples, name: str, /, **labels: str) -> float:
    """All samples of a name that have these labels, added up."""
    return sum(
        number
        for (known, pairs), number in samples.items()
        if known == f"taskqueue_{name}" and labels.items() <= dict(pairs).items()
    )
