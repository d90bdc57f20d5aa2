"""Word vectors as the input embeddings of a model that was not pretrained.

The baseline of Chiang and Yogatama 2023: CBOW vectors (Mikolov et al. 2013, arXiv 1301.3781) carry
the distributional property, and nothing else of masked language modelling. gensim trains them.
"""

from __future__ import annotations

import numpy as np
import torch
from gensim.models import Word2Vec
from numpy.typing import NDArray
from torch import nn

STANDARD_DEVIATION = 0.03
"""Of all entries after scaling, in the released code."""


def cbow(
    tokens: NDArray[np.integer],
    vocabulary_size: int,
    width: int,
    seed: int,
    *,
    window: int = 5,
    epochs: int = 15,
) -> NDArray[np.float32]:
    """(vocabulary_size, width) CBOW vectors of the ids in ``tokens`` (sequences, length).

    gensim's defaults otherwise (5 negative samples, no subsampling below 1e-3); 15 epochs are its
    default 5 and the 10 that the released code adds. One worker, so the same seed gives the same
    vectors. Raises ValueError for an id outside the vocabulary or one that never occurs.
    """
    counts = np.bincount(tokens.ravel(), minlength=vocabulary_size)
    if len(counts) > vocabulary_size:
        raise ValueError(f"ids run to {len(counts) - 1}, the vocabulary has {vocabulary_size}")
    if not counts.all():
        raise ValueError(
            f"id {int(counts.argmin())} never occurs and would have no vector: use more sequences"
        )
    sentences = tokens.astype(str).tolist()
    model = Word2Vec(
        sentences, vector_size=width, window=window, min_count=1, epochs=epochs, seed=seed,
        workers=1,
    )  # fmt: skip
    return model.wv[[str(token) for token in range(vocabulary_size)]]


def scaled(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors times the number that gives all entries together a standard deviation of 0.03."""
    return vectors * (STANDARD_DEVIATION / vectors.std())


def scrambled(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors as the released code reads them back: stacked by column, reshaped by row.

    A (V, d) table is saved as (d, V) and reshaped, not transposed, to (V, d): each row mixes d
    consecutive entries of one coordinate over many words. The entries, and so their scale, stay.
    """
    return np.ascontiguousarray(vectors.T).reshape(vectors.shape)


def shuffled_weights(model: nn.Module, generator: torch.Generator) -> None:
    """Permute the entries of each parameter in place: the values stay, what they encode goes.

    The control ``toys-mix-shuffle`` of the released code. Tied parameters are permuted once.
    """
    with torch.no_grad():
        for parameter in model.parameters():
            order = torch.randperm(parameter.numel(), generator=generator)
            parameter.copy_(parameter.flatten()[order].view_as(parameter))
