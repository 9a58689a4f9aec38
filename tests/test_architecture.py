"""Who may import whom, read from the imports themselves; ARCHITECTURE.md says why."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(file for package in ("ablate", "analysis", "hydra_plugins") for file in (ROOT / package).rglob("*.py"))


def module_of(file: Path) -> str:
    parts = list(file.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file: Path) -> set[str]:
    """Every module a file imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


IMPORTS = {module_of(file): imports(file) for file in FILES}


def users_of(package: str) -> set[str]:
    return {
        module
        for module, used in IMPORTS.items()
        if any(name == package or name.startswith(f"{package}.") for name in used)
    }


def inside(package: str) -> set[str]:
    return {module for module in IMPORTS if module == package or module.startswith(f"{package}.")}


def test_the_rules_are_read_from_real_files():
    assert len(FILES) > 40
    assert "torch" in IMPORTS["ablate.models.gpt"]


@pytest.mark.parametrize("library", ["hydra", "omegaconf"])
def test_hydra_stays_out_of_models_tasks_training_and_analysis(library):
    for package in ("ablate.models", "ablate.tasks", "ablate.training", "analysis"):
        assert not users_of(library) & inside(package)


def test_torch_stays_out_of_the_analysis_and_of_what_reads_records():
    without = inside("analysis") | {
        "ablate.records",
        "ablate.locks",
        "ablate.resume",
        "ablate.status",
        "ablate.sweep.runs",
        "ablate.config.identity",
        "ablate.config.schema",
        "ablate.config.errors",
    }
    assert not users_of("torch") & without


def test_models_and_tasks_know_nothing_of_each_other_or_of_the_rest():
    for package in ("ablate.models", "ablate.tasks"):
        for module in inside(package):
            own = {name for name in IMPORTS[module] if name.startswith("ablate.")}
            assert all(name.startswith(package) for name in own), (module, own)


def test_schemes_never_import_sibling_schemes():
    for module in inside("ablate.models.attention"):
        assert not any(name.startswith("ablate.models.attention") for name in IMPORTS[module]), module


def test_training_knows_no_task_and_no_model_by_name():
    for module in inside("ablate.training"):
        models = {name for name in IMPORTS[module] if name.startswith("ablate.models")}
        assert all(name.startswith(("ablate.models.base", "ablate.models.exact")) for name in models), module
        assert not any(name.startswith("ablate.tasks") and "base" not in name for name in IMPORTS[module]), module
        assert not any(name.startswith("ablate.sweep") for name in IMPORTS[module]), module


def test_the_screen_imports_rich_and_the_standard_library_only():
    assert {name.split(".")[0] for name in IMPORTS["ablate.screen"]} <= {*sys.stdlib_module_names, "rich"}


@pytest.mark.parametrize(
    "module",
    [
        "ablate.records",
        "ablate.locks",
        "ablate.jsonfiles",
        "ablate.directions",
        "ablate.numbers",
        "ablate.stdio",
        "ablate.capacity",
    ],
)
def test_records_and_locks_import_the_standard_library_only(module):
    outside = {name for name in IMPORTS[module] if name.split(".")[0] not in sys.stdlib_module_names}
    assert all(name.startswith("ablate.jsonfiles") for name in outside)


def test_identity_imports_the_standard_library_and_records_only():
    assert {name.split(".")[0] for name in IMPORTS["ablate.config.identity"]} <= {*sys.stdlib_module_names, "ablate"}
    assert {n for n in IMPORTS["ablate.config.identity"] if n.startswith("ablate")} == {
        "ablate.jsonfiles",
        "ablate.jsonfiles.canonical_json",
    }


def test_the_analysis_takes_what_both_share_from_ablate_and_nothing_else():
    for module in inside("analysis"):
        own = {name for name in IMPORTS[module] if name.startswith("ablate")}
        shared = (
            "ablate.records",
            "ablate.jsonfiles",
            "ablate.directions",
            "ablate.numbers",
            "ablate.screen",
            "ablate.stdio",
        )
        assert all(name == "ablate" or name.startswith(shared) for name in own), (module, own)


def test_nothing_imports_the_entry_point_but_the_command_that_is_a_form_of_it():
    assert users_of("ablate.run") <= {"ablate.run", "ablate.tune"}


def test_instantiate_is_called_in_one_module():
    assert users_of("hydra.utils.instantiate") == {"ablate.config.build"}


def test_every_module_opens_with_a_docstring():
    bare = [str(file) for file in FILES if not ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))]
    assert bare == []


def test_functions_stay_short():
    lengths = {}
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                doc = node.body[0].end_lineno - node.body[0].lineno + 1 if ast.get_docstring(node) else 0
                lengths[f"{file.name}:{node.name}"] = node.end_lineno - node.lineno + 1 - doc
    ordered = sorted(lengths.values())
    assert ordered[len(ordered) // 2] <= 8
    assert ordered[int(len(ordered) * 0.9)] <= 25
    assert {name: length for name, length in lengths.items() if length > 50} == {}
