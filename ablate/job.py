"""One run, from its lock to its record: trained at most once at a time, recorded whether it ends well or badly.

Knows nothing of Hydra and of sweeps beyond the id of the sweep it belongs to; `run` calls it in whatever process a
launcher chose.
"""

import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import torch
import yaml

from ablate import devices, isolation, locks, provenance, worker
from ablate.config import preflight
from ablate.config.build import build
from ablate.config.errors import ConfigError
from ablate.config.identity import cell_identity
from ablate.config.schema import RunConfig
from ablate.jsonfiles import write_atomic
from ablate.memory import PeakMemory
from ablate.records import RunFolder, RunRecord, Status
from ablate.resume import Action, decide, read_or_none
from ablate.stop import StopRequest
from ablate.tasks.base import alphabet_fingerprint
from ablate.training import scoring
from ablate.training.trainer import Outcome, train

LOG = logging.getLogger("ablate")


@dataclass(kw_only=True)
class Context:
    """What a run is told about where it belongs; `should_prune` judges it at each evaluation (step, scores)."""

    label: str
    factors: dict[str, Any]
    command: str
    sweep: str | None = None
    stop_file: Path | None = None
    hydra_files: Mapping[str, str] = field(default_factory=dict)
    should_prune: Callable[[int, Mapping[str, float]], bool] = lambda step, scores: False


class Done(NamedTuple):
    """How a run was left: its record, and whether this call trained it. `record` is None while another trains it."""

    record: RunRecord | None
    trained: bool


def perform(
    config: RunConfig,
    values: Mapping[str, Any],
    folder: RunFolder,
    context: Context,
    on_log: Callable[[Mapping[str, Any]], None] = lambda record: None,
) -> Done:
    """Train the run in `folder` unless it has a result or somebody else is at it; never raises for a failed run.

    `values` is the config resolved to plain values, what identity and config.yaml are made of. Raises ConfigError when
    the folder holds another run, and OSError, naming the folder, when the run cannot be recorded there (a full or
    read-only disk).
    """
    stop = StopRequest(context.stop_file)
    if isolation.leftovers:
        _begin_none(context)
    if stop() or isolation.leftovers:
        with contextlib.suppress(OSError):
            folder.path.rmdir()  # Hydra made it; a run that never began leaves nothing
        return Done(read_or_none(folder), trained=False)
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        return _perform_locked(config, values, folder, context, stop=stop, on_log=on_log)
    except locks.LostLockError as error:
        LOG.warning("%s", error)
        return Done(None, trained=False)
    except OSError as error:
        raise OSError(error.errno, f"the run cannot be recorded: {error.strerror}", str(folder.path)) from error


def _begin_none(context: Context) -> None:
    """End the sweep of a process in which a run left what another would meet; a pool has replaced such a process."""
    if worker.is_of_pool():
        return
    sys.stderr.write(
        f"ablate: no other run begins in this process: {isolation.leftovers[0]}; the same command goes on, and "
        "hydra/launcher=local replaces such a process\n"
    )
    if context.stop_file is not None:
        context.stop_file.touch()


def _perform_locked(
    config: RunConfig,
    values: Mapping[str, Any],
    folder: RunFolder,
    context: Context,
    *,
    stop: StopRequest,
    on_log: Callable[[Mapping[str, Any]], None],
) -> Done:
    with locks.hold(folder.lock) as held:
        if held is None:
            return Done(None, trained=False)
        folder.remove_temporaries()
        source = provenance.source_fingerprint(values)
        before = read_or_none(folder)
        _refuse_other(before, cell_identity(values), config.seed, folder)
        action = decide(before, config.sweep.rerun, source, context.sweep)
        if action is Action.keep:
            return Done(before, trained=False)
        if action is Action.restart:
            folder.archive(_archive_name(before))
            before = None
        attempt = _Attempt(config, values, folder, context, source, before, held)
        with _logging_to(folder.log), stop.listening():
            return Done(attempt.recorded(stop, on_log), trained=True)


def _refuse_other(before: RunRecord | None, cell: str, seed: int, folder: RunFolder) -> None:
    """A folder is one cell's and one seed's; only a folder named by hand can be another's."""
    if before is not None and (before.cell, before.seed) != (cell, seed):
        raise ConfigError(
            f"{folder.path}: holds another run ({before.label}, seed {before.seed}, cell {before.cell[:8]}); "
            "choose another folder, or leave hydra.run.dir to ablate"
        )


def _archive_name(record: RunRecord | None) -> str:
    ended = (record.ended or record.started) if record else ""
    name = (ended or now()).replace(":", "").replace("+0000", "Z")
    return "".join(letter for letter in name if letter.isalnum() or letter in "-.")[:40].strip(".") or "unknown"


def now() -> str:
    """Return the time in UTC, ISO 8601 with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True)
class _Attempt:
    """One attempt at a run whose lock is held; `before` is the record it continues, if any."""

    config: RunConfig
    values: Mapping[str, Any]
    folder: RunFolder
    context: Context
    source: str
    before: RunRecord | None
    held: locks.Held

    def recorded(self, stop: StopRequest, on_log: Callable[[Mapping[str, Any]], None]) -> RunRecord:
        """Run, and write the record whatever happens, unless another process has taken the run over."""
        record = self._first_record()
        _write_configs(self.folder, self.values, self.context)
        _write_diff(self.folder, provenance.git_diff())
        self.folder.write(record)
        memory = PeakMemory()
        try:
            with (
                isolation.kept_around_run(f"{record.label} seed={record.seed}"),
                _spare_descriptor(),
                devices.placed(self.config.runtime.device) as device,
            ):
                memory.watch(device)
                self._train(record, device, stop, on_log)
        except KeyboardInterrupt:
            record.status = Status.interrupted
            LOG.warning("interrupted")
            record.take_cost(self.folder.last_metrics())
        except locks.LostLockError:
            raise
        except (Exception, SystemExit) as error:
            LOG.exception("failed")
            record.status, record.error = Status.failed, {"type": type(error).__name__, "message": str(error)}
            record.take_cost(self.folder.last_metrics())
        self.held.check()
        record.ended, record.peak_memory_bytes = now(), memory.read()
        self.folder.write(record)
        return record

    def _train(
        self,
        record: RunRecord,
        device: torch.device,
        stop: StopRequest,
        on_log: Callable[[Mapping[str, Any]], None],
    ) -> None:
        """Build and train, filling in the record as things become known."""
        torch.set_num_threads(self.config.runtime.threads)
        with stop.at_once():
            built = build(self.config, device)
        record.device, record.parameters, record.effective = _device_name(device), built.parameters, built.effective
        record.threads = torch.get_num_threads()
        self._check_alphabet(record, alphabet_fingerprint(built.parts.task.alphabet))
        record.config_warnings += scoring.remarks(built.parts.model, self.config.evaluation)
        LOG.info("%s, seed %d, on %s", record.label, record.seed, record.device)
        outcome = train(
            built.parts,
            self.config,
            self.folder,
            device=device,
            source=record.checkpoint_source,
            should_stop=lambda: self._should_stop(stop),
            on_log=on_log,
            should_prune=self.context.should_prune,
        )
        _fill(record, outcome)

    def _should_stop(self, stop: StopRequest) -> bool:
        self.held.check()
        return stop()

    def _check_alphabet(self, record: RunRecord, found: str) -> None:
        """Raise ConfigError when the run that is continued had other characters; its own stay on record."""
        record.effective["alphabet"] = self.before.effective.get("alphabet", found) if self.before else found
        if record.effective["alphabet"] != found:
            raise ConfigError("task: its characters are not those that this run began with; was the text file changed?")

    def _first_record(self) -> RunRecord:
        before = self.before
        return RunRecord(
            status=Status.running,
            study=self.config.study,
            cell=cell_identity(self.values),
            label=before.label if before else self.context.label,
            factors=before.factors if before else self.context.factors,
            seed=self.config.seed,
            sweep=self.context.sweep,
            steps_planned=self.config.training.steps,
            effective=dict(before.effective) if before else {},
            started=before.started if before else now(),
            resumed=before.resumed + 1 if before else 0,
            versions=provenance.versions(),
            git=provenance.git_state(),
            source=self.source,
            code=provenance.code_parts(self.values),
            host=provenance.host(),
            processor=provenance.processor(),
            command=self.context.command,
            config_warnings=preflight.warnings(self.config),
        )


def _fill(record: RunRecord, outcome: Outcome) -> None:
    """Take over what training came to."""
    if outcome.message:
        LOG.warning(outcome.message)
    record.status, record.metrics = outcome.status, dict(outcome.metrics)
    record.steps_done, record.tokens = outcome.steps_done, outcome.tokens
    record.seconds, record.train_seconds = outcome.seconds, outcome.train_seconds
    record.evaluation_seconds, record.data_seconds = outcome.evaluation_seconds, outcome.data_seconds
    record.tokens_per_second = outcome.tokens / outcome.train_seconds if outcome.train_seconds else None
    if outcome.status is Status.diverged:
        record.error = {"type": "Diverged", "message": outcome.message or ""}


def _write_configs(folder: RunFolder, values: Mapping[str, Any], context: Context) -> None:
    write_atomic(folder.config, yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True).encode())
    for name, text in context.hydra_files.items():
        write_atomic(folder.hydra / name, text.encode())


MOST_DIFF = 1_000_000
"""Characters of a diff that are kept; what it was made of is recorded whole, as a hash."""


def _write_diff(folder: RunFolder, diff: str) -> None:
    """Keep the changes to the code beside the run; none for code as it was committed."""
    if diff:
        cut = f"\n(cut: {len(diff)} characters)\n" if len(diff) > MOST_DIFF else ""
        write_atomic(folder.diff, (diff[:MOST_DIFF] + cut).encode())
    else:
        folder.diff.unlink(missing_ok=True)


def _device_name(device: torch.device) -> str:
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else "cpu"


@contextlib.contextmanager
def _spare_descriptor() -> Iterator[None]:
    """Keep a file descriptor while the block runs: a run that has used up all others can then still say so."""
    spare = os.open(os.devnull, os.O_RDONLY)
    try:
        yield
    finally:
        os.close(spare)


class _LogFile(logging.FileHandler):
    """A log that may lose lines: what a full disk does to a run is told in its record and on stderr."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Say nothing."""

    def close(self) -> None:
        """Close the file, whatever is left unwritten."""
        with contextlib.suppress(OSError):
            super().close()


@contextlib.contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Send everything that is logged while the block runs to this run's log, each line once."""
    handler = _LogFile(path, encoding="utf-8")
    formatter = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.removeHandler(handler)
        root.setLevel(level)
        handler.close()
