"""The display of a sweep: each run that ended is counted once, whoever looks."""

import io
import sys
import threading
from pathlib import Path

from rich.console import Console

from ablate.config.schema import Progress
from ablate.records import PlannedCell, RunRecord, Status, StudyFolder
from ablate.sweep.progress import Display
from ablate.sweep.runs import PlannedRun


def test_a_run_is_counted_once_though_several_threads_look_at_the_same_time(tmp_path: Path):
    cell = PlannedCell(cell="c", label="rope", factors={}, folder="x", overrides=[])
    runs = [PlannedRun(cell, seed, StudyFolder(tmp_path).run("x", seed)) for seed in range(200)]
    display = Display(runs, len(runs), Console(file=io.StringIO()), Progress.off)
    for run in runs:
        record = RunRecord(status=Status.finished, study="s", cell="c", label="rope", factors={}, seed=run.seed)
        run.folder.path.mkdir(parents=True)
        run.folder.write(record)
    errors = []

    def look() -> None:
        try:
            display.poll()
        except Exception as error:
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    assert not errors
    assert display.done == 200
    assert display.counts == {"finished": 200}
