"""How the report copes with many long runs: `python -m benchmarks.analysis_scale [--runs N] [--records N]`.

Writes a study of made-up runs, with records as training writes them, then times `analysis.report` on it in processes of
their own: cold (no cache, no report), and again (nothing has changed). Peak memory is that of the process. The files
have just been written, so the system may hold them in memory: what is timed is reading and computing, not the disk.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import perf_counter

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from ablate.records import PlannedCell, RunRecord, Status, StudyFolder, SweepPlan

EVAL_EVERY = 250
TOKENS_PER_STEP = 1024
STEPS_PER_RECORD = 1
MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Size:
    """How big the study is: runs in all, records in each run's log, variants; or every record an evaluation."""

    runs: int
    records: int
    variants: int
    all_eval: bool = False

    @property
    def seeds(self) -> int:
        """Runs of each variant."""
        return self.runs // self.variants


@dataclass(frozen=True)
class Measured:
    """Seconds from start to end, those the processor worked, and peak resident bytes of one report."""

    seconds: float
    worked: float
    peak: int


def write_study(path: Path, size: Size) -> StudyFolder:
    """Write the study: one plan, and for each run its record and its log."""
    study = StudyFolder(path)
    cells = [_cell(index) for index in range(size.variants)]
    for place, cell in enumerate(cells):
        for seed in range(size.seeds):
            _write_run(study, cell, seed, 0.45 + 0.01 * place, size)
    study.write_sweep(
        SweepPlan(
            id="20260101T000000-aaaa",
            created="2026-01-01T00:00:00+00:00",
            command="",
            study=path.name,
            cells=cells,
            seeds=list(range(size.seeds)),
        )
    )
    return study


def _cell(index: int) -> PlannedCell:
    factors = {"attention": f"scheme{index}"}
    cell = sha256(str(index).encode()).hexdigest()
    return PlannedCell(cell=cell, label=factors["attention"], factors=factors, folder=f"s-{cell[:8]}", overrides=[])


def _write_run(study: StudyFolder, cell: PlannedCell, seed: int, level: float, size: Size) -> None:
    run, draw = study.run(cell.folder, seed), random.Random(f"{cell.cell}{seed}")
    final, steps = level + draw.gauss(0, 0.02), size.records * STEPS_PER_RECORD
    run.path.mkdir(parents=True, exist_ok=True)
    run.metrics.write_text("".join(_lines(final, draw, size)), encoding="ascii")
    run.write(
        RunRecord(
            status=Status.finished,
            study=study.path.name,
            cell=cell.cell,
            label=cell.label,
            factors=cell.factors,
            seed=seed,
            metrics={"eval/loss": final, "eval/loss_se": 0.001, "eval/accuracy": 0.9},
            steps_planned=steps,
            steps_done=steps,
            tokens=steps * TOKENS_PER_STEP,
            seconds=100.0,
            device="cpu",
        )
    )


def _lines(final: float, draw: random.Random, size: Size) -> Iterator[str]:
    """The log: an evaluation every 250 steps and train records else, or evaluations only."""
    for index in range(1, size.records + 1):
        step = index * STEPS_PER_RECORD
        loss = final + 2.0 / (1 + step / 500) + draw.random() * 0.01
        head = f'{{"step": {step}, "tokens": {step * TOKENS_PER_STEP}, "seconds": {step * 0.0137}, '
        if size.all_eval or step % EVAL_EVERY == 0:
            yield f'{head}"split": "eval", "loss": {loss}, "loss_se": 0.00123, "accuracy": {1 / (1 + loss)}}}\n'
        else:
            yield f'{head}"split": "train", "loss": {loss}, "lr": 0.003, "grad_norm": {loss * 0.7}}}\n'


def report_cost(study: StudyFolder, *options: str) -> Measured:
    """Write the report in a new process. Raises RuntimeError unless every run is found to have a value."""
    began = perf_counter()
    command = [sys.executable, "-m", "analysis.report", str(study.path), *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return Measured(perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def title(size: Size, log_bytes: int) -> str:
    """What was measured, in one line."""
    kind = "; every record is an evaluation" if size.all_eval else ""
    logs = f"{log_bytes / 1e9:.2f} GB of logs"
    return f"{size.runs:,} runs x {size.records:,} records, {size.variants} variants, {logs}{kind}"


def table(found: dict[str, Measured]) -> Table:
    """One row per report."""
    shown = Table("report", "seconds", "CPU seconds", "peak MiB", box=MARKDOWN)
    for name, one in found.items():
        shown.add_row(name, f"{one.seconds:.1f}", f"{one.worked:.1f}", f"{one.peak / MIB:.0f}")
    return shown


def measure(study: StudyFolder, *options: str) -> dict[str, Measured]:
    """A report without anything to start from, and once more with all that the first one left."""
    shutil.rmtree(study.report, ignore_errors=True)
    shutil.rmtree(study.analysis_cache, ignore_errors=True)
    return {name: report_cost(study, *options) for name in ("cold", "again")}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.analysis_scale", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--records", type=int, default=10_000, help="in the log of each run")
    parser.add_argument("--variants", type=int, default=20)
    parser.add_argument("--all-eval", action="store_true", help="every record is an evaluation")
    parser.add_argument("--threshold", help="as for analysis.report: steps to the threshold are computed too")
    parser.add_argument("--dir", type=Path, help="where the study is written and left (default: removed at the end)")
    given = parser.parse_args(argv)
    size = Size(runs=given.runs, records=given.records, variants=given.variants, all_eval=given.all_eval)
    options = ["--threshold", given.threshold] if given.threshold else []
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        study = write_study(Path(folder) / "scale", size)
        log_bytes = sum(run.metrics.stat().st_size for run in study.runs())
        console = Console(width=100)
        console.print(title(size, log_bytes))
        console.print(table(measure(study, *options)))


if __name__ == "__main__":
    main()
