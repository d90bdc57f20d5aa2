"""A fingerprint of the code that made a row: stable under formatting, sensitive to any constant.

It is static: the definition of a function is read from its module's source, the names in it are
followed through module-level bindings and imports, and the syntax trees of all that is reached are
hashed. Docstrings, annotations, comments and layout do not count. What static reading cannot see
(a function chosen by a computed name) is not followed.

Sources are read once for each loaded module, all at the first call, so that a file that is edited
during a long run does not change the fingerprint of the code that is running.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

# The machinery that stores rows does not make them.
EXCLUDED = frozenset(
    f"unmasked.{name}"
    for name in ("results", "store", "rows", "fingerprint", "provenance", "project")
)
SKIPPED_FIELDS = frozenset(
    {"ctx", "annotation", "returns", "type_comment", "kind", "type_ignores", "type_params"}
)
LENGTH = 12


@dataclass(frozen=True)
class _Scope:
    """Which modules are followed."""

    packages: frozenset[str]
    without: tuple[str, ...]

    def holds(self, module: str) -> bool:
        below = any(f"{module}.".startswith(f"{name}.") for name in self.without)
        return module.partition(".")[0] in self.packages and module not in EXCLUDED and not below


def fingerprint(*functions: Callable[..., Any], without: Iterable[str] = ()) -> str:
    """12 hex digits for the code of `functions` and of all they refer to in the same package.

    Followed are functions, classes and module constants of package `unmasked` and of the top-level
    package that the function itself comes from, but nothing of the modules in `without` and below
    them. A method or a local function counts as the whole class or function that holds it. Raises
    ValueError for a lambda or a function without source.
    """
    packages = {"unmasked", *(_origin(function)[0].partition(".")[0] for function in functions)}
    scope = _Scope(frozenset(packages), tuple(without))
    for name, module in list(sys.modules.items()):
        if scope.holds(name):
            _bindings(name, module)
    waiting = [_origin(function) for function in functions]
    found: dict[tuple[str, str], str] = {}
    for module, name in waiting:
        if not _load(module).get(name):
            raise ValueError(
                f"No source for {name!r} in module {module!r}: a fingerprint needs a function or "
                "class defined with def or class at the top of a module that is a file."
            )
    while waiting:
        module, name = waiting.pop()
        if (module, name) in found:
            continue
        nodes = _load(module)[name]
        found[module, name] = " ".join(canonical(node) for node in nodes)
        for node in nodes:
            waiting.extend(_references(module, node, scope))
    text = "\n".join(f"{module}:{name} {found[module, name]}" for module, name in sorted(found))
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def canonical(node: object) -> str:
    """A syntax tree as text; the same for Python 3.11 to 3.13 and for any layout of the source."""
    if isinstance(node, list):
        return "[" + ",".join(canonical(item) for item in node if not _is_idle(item)) + "]"
    if not isinstance(node, ast.AST):
        return f"{type(node).__name__}:{node!r}"
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return canonical(ast.Assign(targets=[node.target], value=node.value))
    fields = (
        f"{name}={canonical(value)}"
        for name, value in ast.iter_fields(node)
        if name not in SKIPPED_FIELDS and value is not None and value != []
    )
    return f"{type(node).__name__}({','.join(fields)})"


def _is_idle(node: object) -> bool:
    """True for docstrings, bare constants and `pass`, which do nothing."""
    bare = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return bare or isinstance(node, ast.Pass)


def _origin(function: Callable[..., Any]) -> tuple[str, str]:
    """Module and top-level name of the definition of a function or class."""
    target = inspect.unwrap(function)
    return target.__module__, target.__qualname__.split(".")[0]


def _load(name: str) -> Mapping[str, list[ast.AST]]:
    return _bindings(name, sys.modules.get(name))


@functools.cache
def _bindings(name: str, module: ModuleType | None) -> Mapping[str, list[ast.AST]]:
    """Top-level name -> the statements of module `name` that bind it; empty if it has no source."""
    path = getattr(module, "__file__", None)
    if module is None:
        spec = importlib.util.find_spec(name)
        path = spec.origin if spec else None
    if not path or not path.endswith(".py"):
        return {}
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    bound: dict[str, list[ast.AST]] = {}
    for statement in _statements(tree.body):
        for target in _targets(statement):
            bound.setdefault(target, []).append(statement)
    return bound


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Module-level statements, those inside `if`, `try`, `with` and loops included."""
    for statement in body:
        if isinstance(statement, ast.If | ast.Try | ast.With | ast.For | ast.While):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, part, []))
            for handler in getattr(statement, "handlers", []):
                yield from _statements(handler.body)
        else:
            yield statement


def _targets(statement: ast.stmt) -> Iterator[str]:
    """The names that a module-level statement binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for node in (node for target in targets for node in ast.walk(target)):
            if isinstance(node, ast.Name):
                yield node.id


def _references(module: str, node: ast.AST, scope: _Scope) -> Iterator[tuple[str, str]]:
    """(module, name) of every definition of the packages that a definition refers to."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return
    local = _local_imports(module, node)
    for path in _dotted_names(node):
        head, *rest = path
        start = local.get(head) or f"{module}.{head}"
        if target := _resolve([*start.split("."), *rest], scope):
            yield target


def _dotted_names(node: ast.AST) -> Iterator[list[str]]:
    """Every name and attribute chain that a tree evaluates, annotations left out."""
    parts: list[str] = []
    inner = node
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        yield [inner.id, *reversed(parts)]
        return
    for name, value in ast.iter_fields(node):
        if name in SKIPPED_FIELDS:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _dotted_names(child)


def _local_imports(module: str, node: ast.AST) -> dict[str, str]:
    """Name -> dotted target of the imports inside a definition."""
    found: dict[str, str] = {}
    for statement in ast.walk(node):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for name in _targets(statement):
                found[name] = _import_target(module, statement, name)
    return found


def _import_target(module: str, statement: ast.Import | ast.ImportFrom, name: str) -> str:
    """What `name` stands for after an import statement of `module`, as a dotted path."""
    for alias in statement.names:
        if isinstance(statement, ast.ImportFrom) and name == (alias.asname or alias.name):
            return f"{_import_base(module, statement)}.{alias.name}"
        if isinstance(statement, ast.Import) and alias.asname == name:
            return alias.name
    return name


def _import_base(module: str, statement: ast.ImportFrom) -> str:
    if not statement.level:
        return statement.module or ""
    is_package = hasattr(sys.modules.get(module), "__path__")
    parts = module.split(".")
    parts = parts[: len(parts) - statement.level + (1 if is_package else 0)]
    return ".".join([*parts, *([statement.module] if statement.module else [])])


def _resolve(path: list[str], scope: _Scope, depth: int = 0) -> tuple[str, str] | None:
    """Follow a dotted path through imports to (module, name) of a definition, or None."""
    if path[0] not in scope.packages or depth > 20:
        return None
    module, rest = _split(path)
    if not rest or not scope.holds(module):
        return None
    nodes = _load(module).get(rest[0], [])
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            target = _import_target(module, node, rest[0]).split(".")
            return _resolve([*target, *rest[1:]], scope, depth + 1)
    return (module, rest[0]) if nodes else None


def _split(path: list[str]) -> tuple[str, list[str]]:
    """The longest leading part of a dotted path that is a module, and the rest.

    Grown from the left, so that looking never imports anything but packages.
    """
    count = 1
    while count < len(path) and _is_submodule(".".join(path[:count]), path[count]):
        count += 1
    return ".".join(path[:count]), path[count:]


@functools.cache
def _is_submodule(package: str, name: str) -> bool:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        return False
    return importlib.util.find_spec(f"{package}.{name}") is not None
