"""Numbers that others published on parsing by mutual information, each with where it was read.

Tables for pages, as columns. Nothing here was measured by an experiment of this book but the chain,
which is computed from the treebank files of the official repository with its own metric.
"""

from __future__ import annotations

PAPER = "Zhang and Hashimoto 2021"
README = "README of the official code"
SEEDS = ((59.11, 50.63), (58.97, 51.00), (58.74, 50.23))

# UUAS on WSJ10 and on WSJ-200, 200 sentences of all lengths; None where no number was found.
PARSING = (
    {"system": "mutual information, paper", "WSJ10": 58.74, "WSJ-200": None, "source": PAPER},
    {"system": "Klein and Manning 2004", "WSJ10": 55.91, "WSJ-200": None, "source": PAPER},
    *(
        {"system": f"mutual information, seed {seed}", "WSJ10": short, "WSJ-200": whole,
         "source": README}
        for seed, (short, whole) in enumerate(SEEDS, start=1)
    ),
    {"system": "adjacent chain", "WSJ10": 54.13, "WSJ-200": 47.69, "source": "this book"},
)  # fmt: skip

BERT_BASE_CASED_PARAMETERS = 108_340_804
"""Of `BertForMaskedLM` with the shape of bert-base-cased, tied embeddings counted once."""
