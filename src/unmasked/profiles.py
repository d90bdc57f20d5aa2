"""Profiles: which parameters a chapter runs with, checked before anything is computed.

`book/profiles.yml` states for each chapter and profile the device, the minutes, the memory, the
seeds and the configuration of each experiment. A chapter's own parameters (profile, seed, recompute
and its knobs) come from its notebook, from papermill or from the command line.
"""

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Annotated, Any, Literal, get_args

import pydantic
from tqdm import tqdm

from unmasked import plainyaml, project
from unmasked.project import UserError, unknown
from unmasked.results import Experiment, Rows, Store, load_or_compute
from unmasked.validation import validated

Name = Literal["smoke", "laptop", "gpu", "paper"]
NAMES: tuple[str, ...] = get_args(Name)
COMMON = ("profile", "seed", "recompute")
SESSION_NAMES = frozenset({"In", "Out", "exit", "quit", "get_ipython", "open"})
SEEDS = "seeds"
OPENED = "_unmasked_opened"
FILE = "book/profiles.yml"


class Profile(pydantic.BaseModel):
    """One profile of one chapter.

    `minutes` and `memory_gb` are for the whole chapter on `device`; `experiments` maps an
    experiment to the fields of its configuration and, where it runs on fewer seeds than the
    profile (a long run that carries no claim), `seeds`.
    """

    model_config = pydantic.ConfigDict(strict=True, frozen=True, extra="forbid")

    name: Name
    device: str
    minutes: Annotated[float, pydantic.Field(gt=0)]
    memory_gb: Annotated[float, pydantic.Field(gt=0)]
    seeds: Annotated[tuple[int, ...], pydantic.Field(min_length=1)]
    experiments: dict[str, dict[str, Any]] = {}

    @pydantic.field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) < len(seeds) or min(seeds) < 0:
            raise ValueError("seeds must be distinct and not negative")
        return seeds


@dataclass(frozen=True)
class Run:
    """A chapter with everything decided: profile, parameters, configurations and seeds."""

    chapter: str
    profile: Profile
    parameters: pydantic.BaseModel
    experiments: Mapping[str, Experiment]
    configs: Mapping[str, pydantic.BaseModel]
    seeds: Mapping[str, tuple[int, ...]]

    def rows(self, name: str, store: Store | None = None) -> Rows:
        """Rows of one experiment, loaded or computed; a bar counts seeds where bars are shown.

        Raises UserError for an experiment that the chapter or this profile does not have.
        """
        return load_or_compute(
            self.experiment(name),
            self.configs[name],
            profile=self.profile.name,
            seeds=self.seeds[name],
            recompute=getattr(self.parameters, "recompute", False),
            store=store,
            progress=counted(name),
        )

    def experiment(self, name: str) -> Experiment:
        """The experiment of that name; UserError if this profile does not run it."""
        if name not in self.configs:
            kind = f"experiment of chapter {self.chapter} at profile {self.profile.name}:"
            raise UserError(unknown(kind, name, self.configs))
        return self.experiments[name]


def counted(name: str) -> Callable[[Sequence[int]], Iterable[int]]:
    """A progress bar over the seeds of an experiment; TQDM_DISABLE silences it."""
    return functools.partial(tqdm, desc=name, unit="seed")


def load_profiles(path: Path | None = None) -> Mapping[str, Mapping[str, Profile]]:
    """Chapter -> profile name -> Profile, from `book/profiles.yml` or another file.

    Raises UserError that names the place for a file that is missing or not valid YAML, an unknown
    profile or key, a wrong type or a value out of range.
    """
    file = path or project.root() / FILE
    if not file.is_file():
        raise UserError(f"There is no {FILE}; it belongs to the checkout and to the package.")
    profiles = _profiles(file.read_text(encoding="utf-8"))
    return {chapter: dict(by_name) for chapter, by_name in profiles.items()}


@functools.lru_cache(maxsize=1)
def _profiles(text: str) -> Mapping[str, Mapping[str, Profile]]:
    """The profiles that a text states; read once, since every claim of the ledger asks for them."""
    table = plainyaml.read(text, FILE) or {}
    return {
        chapter: {
            str(name): _profile(str(name), fields, f"{FILE}, {chapter}, {name}")
            for name, fields in _mapping(profiles, f"{FILE}, {chapter}").items()
        }
        for chapter, profiles in _mapping(table, FILE).items()
    }


def resolve(chapter: str, given: Mapping[str, Any]) -> Run:
    """Check the parameters of a chapter and decide its run; computes nothing.

    `given` are the parameters that differ from the chapter's defaults. A knob that is not None
    replaces the field of that name in every experiment's configuration; `seed` shifts the profile's
    seeds. Raises UserError that names the parameter, what is allowed and the nearest spelling.
    """
    table = load_profiles()
    if chapter not in table:
        raise UserError(unknown("chapter", chapter, table))
    profiles = table[chapter]
    module = _module(chapter)
    wanted = given.get("profile")
    if isinstance(wanted, str) and wanted not in profiles:
        raise UserError(unknown(f"profile of chapter {chapter}:", wanted, profiles))
    parameters = validated(module.Parameters, given, "parameter", f"Chapter {chapter}")
    if parameters.profile not in profiles:  # the default, where none was given
        raise UserError(unknown(f"profile of chapter {chapter}:", parameters.profile, profiles))
    profile = profiles[parameters.profile]
    experiments = {
        name: replace(experiment, chapter=chapter)
        for name, experiment in module.EXPERIMENTS.items()
    }
    return Run(
        chapter=chapter,
        profile=profile,
        parameters=parameters,
        experiments=MappingProxyType(experiments),
        configs=MappingProxyType(_configs(chapter, profile, parameters, experiments)),
        seeds=MappingProxyType(_seeds(chapter, profile, parameters.seed)),
    )


def open_chapter(chapter: str, namespace: MutableMapping[str, Any]) -> Run:
    """The run of a notebook, from its global variables; call it right after the parameters cell.

    Every public global with a plain value counts as a parameter, so that a name that papermill
    injects with a misspelling stops the run (papermill itself only logs it). When the cell is run
    again in a live session, names that resemble no parameter are taken for the reader's own.
    """
    plain = {
        name: value
        for name, value in namespace.items()
        if not name.startswith("_")
        and name not in SESSION_NAMES
        and (value is None or isinstance(value, str | int | float | bool | list | tuple | dict))
    }
    known = _module(chapter).Parameters.model_fields if chapter in load_profiles() else {}
    if namespace.get(OPENED) == chapter:
        close = functools.partial(difflib.get_close_matches, possibilities=list(known), cutoff=0.8)
        plain = {name: value for name, value in plain.items() if name in known or close(name)}
    run = resolve(chapter, plain)
    namespace[OPENED] = chapter
    return run


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{place}: a mapping (name: value) is needed, not {value!r}.")
    return value


def _profile(name: str, fields: Any, place: str) -> Profile:
    if name not in NAMES:
        raise UserError(f"{place}: {unknown('profile', name, NAMES)}")
    return validated(Profile, {**_mapping(fields, place), "name": name}, "key", place)


def _module(chapter: str) -> ModuleType:
    """The experiments of a chapter; UserError if its module is missing."""
    name = f"unmasked.experiments.{chapter}"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UserError(f"Chapter {chapter} stands in {FILE} but has no module {name}.") from None


def _configs(
    chapter: str,
    profile: Profile,
    parameters: pydantic.BaseModel,
    experiments: Mapping[str, Experiment],
) -> dict[str, pydantic.BaseModel]:
    """The configuration of each experiment that the profile runs, knobs applied."""
    knobs = {
        name: value
        for name, value in parameters.model_dump(mode="json", exclude=set(COMMON)).items()
        if value is not None
    }
    configs = {}
    for name, fields in profile.experiments.items():
        place = f"{FILE}, {chapter}, {profile.name}"
        if name not in experiments:
            raise UserError(f"{place}: {unknown('experiment', name, experiments)}")
        model = experiments[name].config_model
        fields = {key: value for key, value in fields.items() if key != SEEDS}
        validated(model, fields, "key", f"{place}, {name}")
        turned = {knob: value for knob, value in knobs.items() if knob in model.model_fields}
        place = f"Chapter {chapter}, experiment {name}"
        configs[name] = validated(model, {**fields, **turned}, "parameter", place)
    return configs


def _seeds(chapter: str, profile: Profile, shift: int) -> dict[str, tuple[int, ...]]:
    """The seeds of each experiment: its own if it names some, else the profile's, shifted."""
    seeds = {}
    for name, fields in profile.experiments.items():
        own = fields.get(SEEDS, list(profile.seeds))
        if not isinstance(own, list) or not set(own) <= set(profile.seeds) or not own:
            raise UserError(
                f"{FILE}, {chapter}, {profile.name}, {name}: key {SEEDS!r} must list some of the "
                f"profile's seeds {list(profile.seeds)}, not {own!r}."
            )
        seeds[name] = tuple(seed + shift for seed in own)
        if min(seeds[name]) < 0:
            raise UserError(f"Chapter {chapter}: parameter 'seed' must be 0 or more, not {shift}.")
    return seeds
