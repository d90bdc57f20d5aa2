"""Every test of the corpora has its own empty cache, no folder of data and no hub."""

import datasets
import pytest
from small_corpora import no_hub


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("UNMASKED_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("UNMASKED_DATA", raising=False)
    monkeypatch.setattr(datasets, "load_dataset", no_hub)
