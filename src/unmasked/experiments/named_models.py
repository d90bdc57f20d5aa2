"""Masked language models by name: the book model, a folder, or a model of the hub."""

from __future__ import annotations

import hashlib
from pathlib import Path

from transformers import AutoModelForMaskedLM, AutoTokenizer, PreTrainedModel
from transformers import PreTrainedTokenizerBase as Tokenizer

from unmasked import project
from unmasked.project import UserError

BOOK_MODEL = "book_model"


def load_named(name: str) -> tuple[PreTrainedModel, Tokenizer]:
    """The model, in float32 and in evaluation mode, and its tokenizer.

    `name` is "book_model" (the checkpoint committed beside the rows), a folder that
    `save_pretrained` wrote, or a model of the hub such as "bert-base-uncased". Raises UserError
    that names the model and the way out if it cannot be had or has no mask token.
    """
    place = _folder(name) or name
    try:
        tokenizer = AutoTokenizer.from_pretrained(place)
        model = AutoModelForMaskedLM.from_pretrained(place).float().eval()
    except (OSError, ValueError) as error:
        reason = (str(error).strip().splitlines() or ["no message"])[0][:300]
        raise UserError(
            f"The masked language model {name!r} cannot be loaded ({reason}). Known are "
            f"{BOOK_MODEL!r}, a folder with a saved model and its tokenizer, or, with a network or "
            "a filled cache, the name of a model of the hub."
        ) from error
    if tokenizer.mask_token_id is None:
        raise UserError(f"The model {name!r} has no mask token, so it cannot fill masks.")
    return model, tokenizer


def named_checksum(name: str) -> str:
    """What pins a named model: the first 16 hex digits of its weights' sha256, else its name."""
    folder = _folder(name)
    files = sorted(folder.glob("*.safetensors")) if folder else []
    if not files:
        return name
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _folder(name: str) -> Path | None:
    if name == BOOK_MODEL:
        return project.root() / "results" / "checkpoints" / BOOK_MODEL
    path = Path(name)
    return path if path.is_dir() else None
