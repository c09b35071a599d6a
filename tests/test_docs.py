"""The docs keep up with the code: nothing is undocumented, no link is dead, and every quoted command exists."""

from __future__ import annotations

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main
from typer import Typer

from tilewright.cli import build
from tilewright.corpus.labels import Label
from tilewright.ledger.models import Base
from tilewright.prove.child.escapes import ESCAPES
from tilewright.prove.gates import all_gates
from tilewright.prove.layouts import LAYOUTS
from tilewright.task import (
    INFERRED,
    Contract,
    Dim,
    Scalar,
    Task,
    TaskSheet,
    TensorSpec,
    Tolerance,
    Values,
    Work,
    Workload,
    laws,
)
from tilewright.task.overrides import KEYS, Overrides
from tilewright.task.readers import readers

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / n for n in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted((ROOT / "docs").rglob("*.md"))
NAMES = [str(p.relative_to(ROOT)) for p in PAGES]
MODELS = (Task, TensorSpec, Scalar, Values, Dim, Workload, Work, Contract, Tolerance)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
IN_THE_TREE = ("examples/", "corpus/", "tests/", "tools/", "src/", ".ci/")


def read(page: str) -> str:
    return (ROOT / page).read_text()


def sections(page: str) -> dict[str, str]:
    """Heading (without marks and ticks) to the text below it, up to the next heading of the same level or above."""
    text = BLOCK.sub(lambda m: re.sub(r"^#", " #", m[0], flags=re.MULTILINE), read(page))
    heads = [(m.start(), len(m[1]), m[2].replace("`", "").strip()) for m in
             re.finditer(r"^(#+) (.*)$", text, re.MULTILINE)]  # fmt: skip
    found = {}
    for i, (start, level, title) in enumerate(heads):
        end = next((s for s, lev, _ in heads[i + 1 :] if lev <= level), len(text))
        found[title] = text[start:end]
    return found


def blocks(page: str, language: str) -> list[str]:
    return [body for lang, body in BLOCK.findall(read(page)) if lang == language]


@cache
def commands() -> dict[str, Any]:
    app: Typer = build()
    return typer.main.get_command(app).commands  # type: ignore[attr-defined, no-any-return]


def options(command: str) -> set[str]:
    """Every spelling of every option of a command."""
    return {o for p in commands()[command].params for o in (*p.opts, *p.secondary_opts) if o.startswith("-")}


# ---------------------------------------------------------------------------------------------- nothing is missing


def test_every_command_has_a_section_with_its_options_and_exit_codes() -> None:
    there = sections("docs/check.md")
    for name in commands():
        assert f"tilewright {name}" in there, f"docs/check.md has no section '## `tilewright {name}`'"
        body = there[f"tilewright {name}"]
        for option in options(name) - {"--help", "-h"}:
            assert f"`{option}" in body, f"docs/check.md, section 'tilewright {name}': option {option} is missing"
        assert "Exit code:" in body, f"docs/check.md, section 'tilewright {name}': say the exit codes"


def test_no_section_for_a_command_that_is_gone() -> None:
    for title in sections("docs/check.md"):
        if title.startswith("tilewright "):
            assert title.removeprefix("tilewright ") in commands(), f"docs/check.md describes '{title}'"


def test_every_gate_has_a_section_that_says_what_it_proves() -> None:
    there = sections("docs/gates.md")
    for gate in all_gates():
        assert gate.name in there, f"docs/gates.md has no section '## {gate.name}'"
        for wanted in (f"**Proves:** {gate.proves}\n", "**Role:**", "**Can't see:**", "**Sources:**"):
            assert wanted in there[gate.name], f"docs/gates.md, section '{gate.name}' lacks: {wanted}"


def test_gates_stand_in_the_order_of_work_and_none_is_made_up() -> None:
    titles = [t for t in sections("docs/gates.md") if t != "Gates"]
    assert titles == [g.name for g in all_gates()]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_every_field_is_documented(model: Any) -> None:
    body = sections("docs/contracts.md")[model.__name__]
    for field in model.model_fields:
        assert f"`{field}`" in body, f"docs/contracts.md, section '{model.__name__}': field `{field}` is missing"


@pytest.mark.parametrize(("page", "words"), [
    ("docs/contracts.md", [*get_args(Values.model_fields["kind"].annotation), *KEYS]),
    ("docs/contracts.md", [n for n in vars(laws) if n in ("permutes", "invariant_to_order", "shift_invariant", "scales",
                                                          "sums_to", "gradient_sums_to_zero")]),
    ("docs/gates.md", list(LAYOUTS)),
    ("docs/corpus.md", list(Label.model_fields)),
    ("docs/ledger.md", list(Base.metadata.tables)),
], ids=["values and overrides", "laws", "layouts", "labels", "tables"])  # fmt: skip
def test_every_name_is_documented(page: str, words: list[str]) -> None:
    assert words
    for word in words:
        assert f"`{word}`" in read(page), f"{page} does not mention `{word}`"


def test_every_escape_is_documented() -> None:
    for e in ESCAPES:
        assert f"| {e.name} | {e.means} |" in read("docs/sandbox.md")


def test_every_reader_is_documented() -> None:
    titles = {"functions": "Function pairs", "gpumode": "GPU MODE", "flashinfer_bench": "flashinfer-bench",
              "kernelbench": "KernelBench", "tilewright": "Tilewright"}  # fmt: skip
    there = sections("docs/readers.md")
    for name in readers():
        assert titles.get(name, name) in there, f"docs/readers.md has no section for the reader '{name}'"


def test_the_default_budget_is_the_one_in_the_docs() -> None:
    from tilewright.prove.compare import FLOOR_ULPS, GROSS, K

    text = read("docs/tolerance.md")
    assert f"`k` is {K:g}, `floor` is {FLOOR_ULPS:g}" in text
    assert f"more than {GROSS:.0%} of the value" in text


def test_pytest_options_are_documented() -> None:
    from tilewright import pytest_plugin

    for option in re.findall(r"addoption\(\"(--[\w-]+)\"", Path(pytest_plugin.__file__).read_text()):
        assert option in read("docs/ci.md")


def test_every_folder_of_the_package_is_on_the_map() -> None:
    text = read("docs/ARCHITECTURE.md")
    package = ROOT / "src" / "tilewright"
    for folder in sorted(p for p in package.rglob("*") if p.is_dir() and (p / "__init__.py").is_file()):
        if folder.parent.name == "ops" and (folder / "op.py").is_file():  # an operator: found by listing
            assert f"`{folder.name}`" in read("docs/ops.md"), f"docs/ops.md does not mention {folder.name}"
        else:
            assert f"{folder.name}/" in text, f"docs/ARCHITECTURE.md does not mention {folder.relative_to(ROOT)}/"


# ------------------------------------------------------------------------------------------------ nothing is stale


def anchor(title: str) -> str:
    """As GitHub makes anchors from headings."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", NAMES)
def test_links_resolve(page: str) -> None:
    text = BLOCK.sub("", read(page))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        path, _, fragment = target.partition("#")
        file = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert file.exists(), f"{page}: link to {target}"
        if fragment:
            anchors = {anchor(t) for t in sections(str(file.relative_to(ROOT)))}
            assert fragment in anchors, f"{page}: link to {target}; headings there: {', '.join(sorted(anchors))}"


def quoted() -> list[tuple[str, list[str]]]:
    """Every command of a shell block (and those after ``$`` in plain blocks), as (page, words)."""
    found = []
    for page in NAMES:
        for language, body in BLOCK.findall(read(page)):
            for line in body.splitlines():
                text = line.strip()
                shown = language == "" and text.startswith("$ ")
                if text and (language == "sh" or shown):
                    found.append((page, shlex.split(text.removeprefix("$ "), comments=True)))
    return found


def test_commands_are_quoted_at_all() -> None:
    assert len(quoted()) > 10


@pytest.mark.parametrize(("page", "words"), quoted(), ids=lambda v: v if isinstance(v, str) else " ".join(v)[:60])
def test_quoted_commands_exist(page: str, words: list[str]) -> None:
    words = [w for w in words if not re.match(r"^[A-Z_]+=", w)]
    for word in words:
        if word.startswith(IN_THE_TREE):
            assert (ROOT / word).exists(), f"{page}: {word} does not exist"
    program, rest = Path(words[0]).name, words[1:]
    if program == "make":
        for target in rest:
            assert re.search(rf"^{target}:", read("Makefile"), re.MULTILINE), f"{page}: no target '{target}'"
    if program == "tilewright" and not rest[0].startswith("-"):
        assert rest[0] in commands(), f"{page}: no command '{rest[0]}'"
        given = {w.partition("=")[0] for w in rest[1:] if re.match(r"^--?[a-z]", w)}
        assert given <= options(rest[0]), f"{page}: {given - options(rest[0])} are no options of '{rest[0]}'"


def test_paths_on_the_map_exist() -> None:
    text = sections("docs/ARCHITECTURE.md")["I want to add a …"]
    paths = re.findall(r"`((?:src|tests|corpus|docs)/[\w/.]*)`", text)
    assert len(paths) > 10
    for path in paths:
        assert (ROOT / path).exists(), f"docs/ARCHITECTURE.md: {path}"


def test_files_on_the_map_exist() -> None:
    package = ROOT / "src" / "tilewright"
    known = {p.name for p in package.rglob("*.py")}
    for name in re.findall(r"`(?:[\w]+/)*(\w+\.py)`", read("docs/ARCHITECTURE.md")):
        assert name in known, f"docs/ARCHITECTURE.md names {name}, which is not there"


def test_examples_of_task_files_run() -> None:
    tasks = [b for b in blocks("docs/contracts.md", "python") if "TASK = " in b]
    assert tasks
    for text in tasks:
        namespace: dict[str, Any] = {"__name__": "example"}
        exec(compile(text, "docs/contracts.md", "exec"), namespace)
        sheet = namespace["TASK"].sheet(name="example", path="", files={})
        for w in sheet.workloads:
            assert set(w.dims) == set(sheet.dims)


def test_contract_files_in_the_docs_can_be_applied() -> None:
    sheet = TaskSheet(name="problem", inputs={"x": TensorSpec("batch")}, dims={"batch": Dim()}, contract=INFERRED)
    for text in blocks("docs/contracts.md", "toml"):
        changed = Overrides(tomllib.loads(text), "docs/contracts.md").apply(sheet)
        assert changed != sheet


def test_labels_in_the_docs_are_read() -> None:
    for text in blocks("docs/corpus.md", "toml"):
        for body in tomllib.loads(text).values():
            assert Label.model_validate(body)


def test_the_workflow_is_yaml_and_runs_our_command() -> None:
    yaml = pytest.importorskip("yaml")
    (text,) = blocks("docs/ci.md", "yaml")
    steps = yaml.safe_load(text)["jobs"]["check"]["steps"]
    runs = [shlex.split(s["run"]) for s in steps if "run" in s]
    (ours,) = [r for r in runs if r[0] == "tilewright"]
    assert {w for w in ours if w.startswith("--")} <= options(ours[1])


@pytest.mark.parametrize("page", NAMES)
def test_pages_are_plain(page: str) -> None:
    """No placeholder is left, and no line is so long that a diff can't be read."""
    text = read(page)
    for word in ("TODO", "TBD", "FIXME", "XXX", "@@"):
        assert word not in text, f"{page}: {word}"
