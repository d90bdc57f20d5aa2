"""Paraphrase of a phrase by translating it into another language and back.

Chiang and Yogatama 2023, the decoding rules of their released code: English to German to English
with beams of five, the way back forced to begin with the words before the phrase. Where the facts
leave open what is translated, the words up to the end of the phrase are, so that the forced
beginning leaves exactly the phrase to be said anew (this book's reading).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from nltk import edit_distance
from torch import Tensor
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from unmasked.perturb import Candidate, Perturbation, replaced

FORWARD, BACK = "facebook/wmt19-en-de", "facebook/wmt19-de-en"
BEAMS = 5
MARGIN = 1.0
"""Candidates whose log score is this near to the best are as good (nats)."""
LONGEST = 64
"""A translation ends after so many tokens."""


@dataclass(frozen=True)
class Translator:
    """A sequence-to-sequence model and its tokenizer.

    The tokenizer must give the words of the target language the ids that the decoder has for them:
    `text_target` of tokenizers that have one, or one vocabulary for both languages.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


def load_translator(name: str) -> Translator:
    """A translator of the hub, or of a folder, in evaluation mode on the CPU.

    Raises ValueError, naming it and the way out, if it or a package that it needs is not there.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModelForSeq2SeqLM.from_pretrained(name)
    except (OSError, ImportError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        raise ValueError(
            f"cannot load the translator {name!r} ({reason}); connect to the hub or give a folder, "
            f"and for {FORWARD} and {BACK} pip install sacremoses"
        ) from None
    return Translator(model.eval(), tokenizer)


def paraphrased(
    words: Sequence[str],
    candidate: Candidate,
    kind: str,
    forward: Translator,
    back: Translator,
    sentence: int = 0,
) -> Perturbation | None:
    """A sentence with one phrase (or word) said anew; None if the translators say nothing.

    A noun phrase that nothing precedes under its parent is translated alone, any other phrase with
    the words before it, which the way back must repeat. `kind` and `sentence` are kept in the
    result, whose replacement may equal the phrase (`Perturbation.same`). Raises ValueError for an
    empty sentence and a candidate outside it.
    """
    phrase = list(words[candidate.start : candidate.stop])
    original = replaced(words, candidate, " ".join(phrase))
    alone = candidate.kind == "NP" and candidate.leftmost
    prefix = "" if alone else " ".join(words[: candidate.start])
    (foreign, *_), _ = translations(forward, f"{prefix} {' '.join(phrase)}".strip())
    texts, scores = translations(back, foreign, prefix)
    said = [(text.split(), score) for text, score in zip(texts, scores, strict=True) if text]
    if not said:
        return None
    tokens, scores = zip(*said, strict=True)
    replacement = " ".join(tokens[choose(tokens, scores, phrase)])
    changed = replaced(words, candidate, replacement)
    span = (candidate.start, candidate.stop)
    return Perturbation(sentence, kind, original, changed, span, " ".join(phrase), replacement)


def choose(
    candidates: Sequence[Sequence[str]],
    scores: Sequence[float],
    source: Sequence[str],
    margin: float = MARGIN,
) -> int:
    """Of the candidates within `margin` of the best log score, the one least like `source`.

    Likeness is the edit distance of words; of equally unlike ones the best score wins, then the
    first. Raises ValueError without candidates, for another number of scores, and for a negative
    margin.
    """
    if not candidates or len(candidates) != len(scores):
        raise ValueError(f"{len(candidates)} candidates with {len(scores)} scores to choose from")
    if margin < 0:
        raise ValueError(f"the margin must be at least 0, got {margin}")
    best = max(scores)
    good = [number for number, score in enumerate(scores) if score >= best - margin]
    return max(
        good,
        key=lambda n: (edit_distance(list(candidates[n]), list(source)), scores[n], -n),
    )


@torch.no_grad()
def translations(
    translator: Translator, text: str, prefix: str = ""
) -> tuple[list[str], list[float]]:
    """The beam's translations of a text, best first, each after the forced `prefix`, and scores.

    The prefix is not part of the results. Scores are log-probabilities of what follows it (its end
    included), divided by its number of tokens to the power of the model's length penalty.
    """
    model, tokenizer = translator.model, translator.tokenizer
    device = next(model.parameters()).device
    inputs = tokenizer(text, return_tensors="pt").to(device)
    start = _beginning(translator, prefix).to(device)
    output = model.generate(
        input_ids=inputs.input_ids,
        attention_mask=inputs.attention_mask,
        decoder_input_ids=start,
        num_beams=BEAMS,
        num_return_sequences=BEAMS,
        max_new_tokens=LONGEST,
        do_sample=False,
        output_scores=True,
        return_dict_in_generate=True,
    )
    said = output.sequences[:, start.shape[1] :]
    texts = [tokenizer.decode(row, skip_special_tokens=True).strip() for row in said]
    return texts, np.asarray(output.sequences_scores.cpu(), float).tolist()


def _beginning(translator: Translator, prefix: str) -> Tensor:
    """(1, P) ids that the decoder is forced to begin with: its start token and the prefix."""
    start = translator.model.generation_config.decoder_start_token_id
    ids = [] if not prefix else _target_ids(translator.tokenizer, prefix)
    return torch.tensor([[start, *ids]])


def _target_ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return tokenizer(text_target=text, add_special_tokens=False)["input_ids"]
