"""Templates that turn a sentence or phrase into a question to a masked language model.

Those of the released code of Chiang and Yogatama 2023, as data: the task templates with their
verbalisers, two that ask about a whole sentence, and those for a phrase without its sentence.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray
from transformers import PreTrainedTokenizerBase

from unmasked.cloze import label_word_ids

_END = re.compile(r"[\s.!?,;:…\"'’”`)\]]*$")


@dataclass(frozen=True)
class Template:
    """A sentence frame. `{first}` and `{second}` are texts, `{mask}` the mask token.

    `{body}` and `{end}` are the first text without and from its last punctuation on. `verbaliser`
    gives each label its word, in the order of the task's labels (0 first); without one the whole
    vocabulary may fill the mask.
    """

    name: str
    pattern: str
    verbaliser: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the task, in order; empty without a verbaliser."""
        return tuple(self.verbaliser)

    @property
    def pair(self) -> bool:
        """Whether it takes two texts."""
        return "{second}" in self.pattern


SST2_TASK = Template(
    "task (SST-2)",
    "{first} It was {mask} .",
    MappingProxyType({"negative": "terrible", "positive": "great"}),
)
MNLI_TASK = Template(
    "task (MNLI)",
    "{first} ? {mask} , {second}",
    MappingProxyType({"entailment": "yes", "neutral": "maybe", "contradiction": "no"}),
)
MEANS = Template("means", 'This sentence : "{first}" means {mask}')
WITH = Template("with", "{body} with {mask}{end}")

_VERBS = Template("phrase of a verb", "{mask} {first}")
_NOUNS = Template("phrase of a noun", "{first} {mask}")
_ADJECTIVES = Template("phrase of an adjective", "{mask} is {first}")
PHRASE: Mapping[str, Template] = MappingProxyType(
    {"VP": _VERBS, "V": _VERBS, "NP": _NOUNS, "N": _NOUNS, "ADJP": _ADJECTIVES, "J": _ADJECTIVES}
)
"""By the kind of a candidate: the template for a phrase or word without its sentence."""


def phrase_template(kind: str) -> Template:
    """The template for a candidate of this kind; ValueError, with the kinds, for another."""
    if kind not in PHRASE:
        raise ValueError(f"no template for the kind {kind!r}.{_near(kind, PHRASE)}")
    return PHRASE[kind]


def fill(
    template: Template,
    text: str | Sequence[str],
    mask_token: str,
    second: str | Sequence[str] | None = None,
) -> str:
    """The template with a text (a string or its words), a second one for pairs, and one mask token.

    White space at the ends of the texts goes. Where a template asks before the last punctuation, a
    text that is punctuation alone comes first whole. Raises ValueError for an empty text, a second
    text missing or too many, and a text that holds the mask token already.
    """
    if template.pair != (second is not None):
        wanted = "two texts" if template.pair else "one text"
        raise ValueError(f"the template {template.name!r} takes {wanted}")
    first = _text(text, mask_token)
    begin = _END.search(first).start() or len(first)
    return template.pattern.format(
        first=first,
        second="" if second is None else _text(second, mask_token),
        body=first[:begin],
        end=first[begin:],
        mask=mask_token,
    )


def verbaliser_ids(template: Template, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """The ids of the words of a template's verbaliser, in the order of its labels.

    Raises ValueError if it has none, or if a word is not exactly one piece of the vocabulary.
    """
    if not template.verbaliser:
        raise ValueError(f"the template {template.name!r} has no verbaliser")
    return label_word_ids(tokenizer, tuple(template.verbaliser.values()))


def label_order(
    template: Template, id2label: Mapping[int, str], names: Mapping[str, str] | None = None
) -> list[int]:
    """The model's class for each label of a template: `probabilities[:, order]` is in its order.

    `id2label` is that of the model's config; upper and lower case do not count. `names` says what
    the model calls a label where it has another name, for example {"negative": "LABEL_0"}. Raises
    ValueError, with the model's names and the way out, where a label is not among them, and where
    the model has another number of classes than the task.
    """
    names = {} if names is None else dict(names)
    if unknown := sorted(set(names) - set(template.labels)):
        raise ValueError(
            f"{unknown[0]!r} is no label of {template.name!r}.{_near(unknown[0], template.labels)}"
        )
    classes = {name.lower(): number for number, name in id2label.items()}
    if len(classes) != len(template.labels):
        raise ValueError(
            f"the model has {len(classes)} classes ({', '.join(id2label.values())}), the task has "
            f"{', '.join(template.labels)}"
        )
    order = []
    for label in template.labels:
        name = names.get(label, label)
        if name.lower() not in classes:
            raise ValueError(
                f"which class of the model is {label!r}? It calls its classes "
                f"{', '.join(id2label.values())}; pass names={{{label!r}: ...}} for each label"
            )
        order.append(classes[name.lower()])
    if len(set(order)) < len(order):
        raise ValueError(f"two labels are the same class of the model: classes {order}")
    return order


def known_labels(labels: ArrayLike, classes: int) -> NDArray[np.int64]:
    """The labels (B,), for measurements that need them, as int64.

    Raises ValueError where they are hidden (-1, as in the test splits of GLUE) or not in
    0..classes - 1. Perturbing and the changes of predictions need no labels.
    """
    labels = np.asarray(labels, dtype=np.int64)
    hidden = int((labels == -1).sum())
    if hidden:
        raise ValueError(
            f"{hidden} of {labels.size} labels are -1: this split hides its labels; use one that "
            "has them, or a measurement that needs none"
        )
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        raise ValueError(
            f"labels run from {labels.min()} to {labels.max()}, allowed are 0 to {classes - 1}"
        )
    return labels


def _text(text: str | Sequence[str], mask_token: str) -> str:
    joined = (text if isinstance(text, str) else " ".join(text)).strip()
    if not joined:
        raise ValueError("the text is empty; drop empty sentences first")
    if mask_token in joined:
        raise ValueError(
            f"the text holds the mask token {mask_token} already, so two masks would stand in the "
            "template; fill it with a text without masks"
        )
    return joined


def _near(given: str, allowed: Iterable[str]) -> str:
    near = difflib.get_close_matches(given, list(allowed), n=1, cutoff=0.3)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{hint} Known: {', '.join(allowed)}."
