"""Finished sentences on disk, so that a long run over a corpus can be stopped and taken up."""

from __future__ import annotations

import hashlib
import os
import warnings
import zipfile
from pathlib import Path

import numpy as np
from torch import nn

from unmasked.mi_sentences import SentenceInformation


def weights_digest(model: nn.Module) -> bytes:
    """sha256 of all parameters and buffers with their names: what pins a model."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        array = value.detach().cpu().float().contiguous().numpy()
        digest.update(f"{name}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.digest()


def file_of(folder: Path, *parts: bytes) -> Path:
    """The file whose name is a digest of everything that a result rests on."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return folder / f"{digest.hexdigest()[:40]}.npz"


def load_information(path: Path) -> SentenceInformation | None:
    """A stored result; None if there is none, or if it cannot be read (with a warning)."""
    if not path.exists():
        return None
    try:
        with path.open("rb") as file, np.load(file) as stored:
            found = SentenceInformation(
                stored["information"], stored["captured"], int(stored["rows"]),
                stored["word_of"], int(stored["words"]),
            )  # fmt: skip
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        warnings.warn(f"{path.name} cannot be read ({error}); computed again", stacklevel=2)
        return None
    return found


def save_information(path: Path, information: SentenceInformation) -> None:
    """Write a result under a temporary name, then rename it: a file is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.stem}.{os.getpid()}.partial")
    with partial.open("wb") as file:
        np.savez(file, **vars(information))
    os.replace(partial, path)
