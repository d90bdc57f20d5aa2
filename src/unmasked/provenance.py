"""One record for each computed seed: which code, data, machine and time made its rows."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from unmasked import __version__

COLUMNS = (
    "run_id", "experiment", "profile", "config_hash", "seed", "config", "package_version",
    "fingerprint", "data_checksum", "python", "torch", "device", "threads", "wall_seconds",
    "peak_memory_mb", "date",
)  # fmt: skip
STATUS = Path("/proc/self/status")


@contextmanager
def recorded(**given: Any) -> Iterator[dict[str, Any]]:
    """Measure the block and fill the yielded record when it ends without an error.

    `given` holds experiment, config_hash, seed, config, fingerprint and data_checksum. Times are
    wall seconds of this attempt (a resumed run counts from its resumption); memory is the largest
    resident size of this process in megabytes during the block (since its start where the system
    cannot say), accelerator memory not included.
    """
    record: dict[str, Any] = dict(given)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    start = time.perf_counter()
    _reset_peak_memory()
    yield record
    record |= {
        "package_version": __version__,
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
        "device": _device(),
        "threads": _threads(),
        "wall_seconds": round(time.perf_counter() - start, 2),
        "peak_memory_mb": _peak_memory_mb(),
        "date": date,
    }
    identity = json.dumps([record, os.getpid(), time.time_ns()], sort_keys=True)
    record["run_id"] = hashlib.sha256(identity.encode()).hexdigest()[:12]


def _device() -> str:
    """The accelerator's type where torch is in use and sees one, else cpu."""
    torch = sys.modules.get("torch")
    accelerator = torch.accelerator.current_accelerator() if torch else None
    return accelerator.type if accelerator else "cpu"


def _threads() -> int:
    torch = sys.modules.get("torch")
    return torch.get_num_threads() if torch else int(os.environ.get("OMP_NUM_THREADS", "1"))


def _reset_peak_memory() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak_memory_mb() -> int | None:
    """Largest resident size in megabytes, None where the system cannot say."""
    if STATUS.is_file():
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 1024)
    try:
        import resource
    except ImportError:
        return None
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
