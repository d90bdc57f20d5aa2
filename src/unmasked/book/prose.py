"""Results typed by hand: what the publish gate refuses to find in a chapter's source.

The rule, for Markdown cells outside code, links, citations and other roles:

1. No decimal number in running text; inside `$...$` or `$$...$$` it may stand, as a constant of a
   formula. The number of a part of a paper may stand too: "Section 3.2", "Table 2.1", "§ 4.1".
2. No number followed by a unit of a result, in maths or not: nats, bits, tokens/s, seconds,
   minutes, hours, MB, GB, times faster, x (outside maths), ×, %, accuracy points. Allowed are whole
   numbers before % or minutes that stand in the chapter's part of book/profiles.yml (0.15 there
   allows 15 %), and the masking constants 10, 15, 80 and 100 %.
3. None of the words of a verdict: reproduced, not reproduced, direction only.

In code cells the same holds for the literal text given to say(), print(), show(), table() and
Figure(), and for any argument named alt or caption; the fields of an f-string are computed and may
hold anything.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

MASKING_PERCENT = frozenset({10, 15, 80, 100})
SPEAKING = frozenset({"say", "print", "show", "table", "Figure"})
SPOKEN_ARGUMENTS = frozenset({"alt", "caption"})

_FIELD = "\x00"  # stands for a computed field of an f-string
_NOT_PROSE = re.compile(
    r"""^[ ]*(?P<fence>`{3,}|~{3,})(?![ ]*\{)[^\n]*\n.*?^[ ]*(?P=fence)[`~]*[ ]*$   # code
    | ^[ ]*(?:`{3,}|:{3,})\{[\w:-]+\}        # a directive's name; its title and body are prose
    | ^:[\w-]+:.*$ | ^\([\w:.-]+\)=          # its options; a label
    | (?:\{[a-z][\w:-]*\})?(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)      # roles and inline code
    | !?\[[^\]]*\]\([^)]*\) | <?https?://\S+                    # links
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_MATHS = re.compile(r"(?<!\\)\$\$.+?\$\$|(?<![\\$])\$(?!\$)(?:\\.|[^$\\])+\$", re.DOTALL)
_BODY = r"(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_DECIMAL = re.compile(r"(?<![\w.])(?:[\d,]*\d\.\d+|\.\d+|\d+(?:\.\d+)?e[-+]?\d+)", re.IGNORECASE)
_PART = re.compile(
    r"(?:(?:Sections?|Chapters?|Tables?|Figures?|Equations?|Appendix|Theorem|Lemma)\s+|§\s*)"
    r"(?:[A-Z]\.)?\d+(?:\.\d+)*(?:(?:,|\s+and|\s+to)\s+\d+(?:\.\d+)*)*"
)
_FILLER = r"(?:[\s~{}$-]|\\[,;: ]|\\(?:text|mathrm))*"
_UNIT = (
    r"(?:nats?\b|(?<!-)bits?\b|tokens?\s*(?:/|per\s+)\s*s(?:econd)?\b|seconds?\b|minutes?\b|hours?\b"
    r"|[MG]i?B\b|times\s+(?:as\b|faster|slower)|x\b(?!\s*\d)|×(?!\s*\d)|\\times\b(?!\s*[\w\\({])|\\?%"
    r"|percent\b|(?:accuracy|percentage)\s+points?\b)"
)
_MEASURED = re.compile(rf"(?<![\w.])(?P<number>{_BODY}){_FILLER}(?P<unit>{_UNIT})")
_VERDICT = re.compile(r"\b(?:not\s+reproduced|reproduced|direction\s+only)\b", re.IGNORECASE)


def typed_results(markdown: str, constants: Iterable[float] = ()) -> list[str]:
    """What breaks the rule in a Markdown text, each quoted; empty if nothing does.

    `constants` are the numbers of the chapter's profiles.
    """
    return _broken(_NOT_PROSE.sub(" ", markdown), frozenset(constants))


def typed_results_in_code(source: str, constants: Iterable[float] = ()) -> list[str]:
    """What breaks the rule in the literal text that a code cell puts on the page."""
    allowed = frozenset(constants)
    found: list[str] = []
    try:
        tree = ast.parse(source)
    except SyntaxError:  # such a cell cannot run, so it is refused for that
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for argument in _spoken(node):
                text = _literal_text(argument)
                found.extend(_broken(_NOT_PROSE.sub(" ", text), allowed))
    return found


def numbers_in(value: Any) -> Iterator[float]:
    """All numbers in nested mappings and lists, such as a chapter's part of profiles.yml."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers_in(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def _broken(prose: str, constants: frozenset[float]) -> list[str]:
    text = _PART.sub(" ", prose)
    variables = [match.span() for match in _MATHS.finditer(text)]  # where x is a variable
    found = [
        f"a measured number {_quoted(match[0])}"
        for match in _MEASURED.finditer(text)
        if not _allowed(match["number"], match["unit"], constants)
        and not (match["unit"] == "x" and any(a <= match.start() < b for a, b in variables))
    ]
    without_maths = _MATHS.sub(" ", text)
    found += [f"a decimal number {_quoted(m[0])}" for m in _DECIMAL.finditer(without_maths)]
    found += [f"a verdict {_quoted(m[0])}" for m in _VERDICT.finditer(prose)]
    return found


def _quoted(text: str) -> str:
    return repr(" ".join(text.replace(_FIELD, "").split()))


def _allowed(number: str, unit: str, constants: frozenset[float]) -> bool:
    if not number.isdigit():
        return False
    value = int(number)
    if unit.startswith("minute"):
        return value in constants
    if unit in ("%", "\\%", "percent"):
        shares = {round(100 * constant, 9) for constant in constants}
        return value in MASKING_PERCENT or value in constants or value in shares
    return False


def _spoken(call: ast.Call) -> list[ast.expr]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else None
    if isinstance(call.func, ast.Name):
        name = call.func.id
    named = [keyword.value for keyword in call.keywords if keyword.arg in SPOKEN_ARGUMENTS]
    return [*call.args, *named] if name in SPEAKING else named


def _literal_text(expression: ast.expr) -> str:
    """The literal pieces of a string expression, with a mark for what is computed."""
    match expression:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_literal_text(part) for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _literal_text(left) + _literal_text(right)
        case ast.IfExp(body=body, orelse=orelse):
            return f"{_literal_text(body)} {_FIELD} {_literal_text(orelse)}"
        case _:
            return _FIELD
