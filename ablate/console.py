"""What a single run shows on the terminal; a run of a sweep shows nothing (the sweep does)."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from ablate.config.schema import Progress, RunConfig
from ablate.numbers import rounded, score
from ablate.records import RunFolder, Status


class RunConsole:
    """One line for each evaluation, and one at the end that says where the results are."""

    def __init__(self, config: RunConfig, *, quiet: bool) -> None:
        self.quiet = quiet or config.runtime.progress is Progress.off
        self.steps = config.training.steps
        self.console = Console(highlight=False)

    def on_log(self, record: Mapping[str, Any]) -> None:
        """Show an evaluation."""
        if self.quiet or record.get("split") != "eval":
            return
        accuracy = rounded(record["accuracy"], 3, apart=(1.0,))
        self.console.print(
            f"step {record['step']}/{self.steps}  eval loss {score(record['loss'])}  accuracy {accuracy}"
            f"  {record['seconds']:.1f} s"
        )

    def end(self, done: Any, folder: RunFolder) -> None:
        """Say how the run ended."""
        if self.quiet:
            return
        record = done.record
        if record is None:
            self.console.print(f"another process trains this run now: {folder.path}", style="yellow", markup=False)
        elif not done.trained:
            self.console.print(
                f"{record.status.value} before, not run again (sweep.rerun=finished would)  {folder.path}", markup=False
            )
        else:
            self._ended(record, folder)

    def _ended(self, record: Any, folder: RunFolder) -> None:
        self.console.print(record.status.value, style="green" if record.status is Status.finished else "red", end="")
        if record.error:
            self.console.print(f": {record.error['type']}: {record.error['message']}", markup=False, end="")
        self.console.print(f"  {folder.path}", soft_wrap=True, markup=False)
