"""Whole scripts under `gapless run`: what they do is unchanged, and the window is right."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from recorder_jobs import HEAD, TRAIN, Ran, environment, finish, load, steps

from gapless.runtime.recorder.names import stem

pytest.importorskip("torch")

Run = Callable[..., Ran]


def script_lines(text: str) -> list[str]:
    """Standard error without our own lines."""
    return [line for line in text.splitlines() if not line.startswith("gapless")]


def test_a_training_script_is_recorded_and_timed(recorded: Run) -> None:
    ran = recorded(TRAIN + "train(400)\nprint('end', model[0].weight.device)\n", flags=("--steps", "3", "--skip", "5"))
    assert (ran.code, ran.out) == (0, "end cpu\n")
    trace = ran.timing()
    record = trace["gapless"]
    assert record["step"] == {"on": "optimizer", "definition": "each AdamW.step()"}
    numbers = steps(trace)
    assert numbers == list(range(numbers[0], numbers[0] + 4))
    assert record["window"]["cold_steps"] == 5
    assert record["window"]["first_step"] == numbers[0]
    assert record["window"]["cut"] is None
    before, after = record["baseline"]["before_ms"], record["baseline"]["after_ms"]
    assert len(before) == 1
    assert len(after) == 2
    assert all(value > 0 for value in before + after)
    assert record["environment"]["torch"] in trace["gapless"]["environment"]["torch"]
    assert trace["record_shapes"] == 1
    assert "with_stack" not in trace
    stack = load(ran.folder / record["stack_file"])
    assert stack["with_stack"] == 1
    assert stack["gapless"]["role"] == "stack"
    assert stack["gapless"]["timing_file"] in {p.name for p in ran.files()}
    assert stack["gapless"]["baseline"] == record["baseline"]
    optimizer = [e for e in trace["traceEvents"] if str(e.get("name")).startswith("Optimizer.step#")]
    marks = [e for e in trace["traceEvents"] if str(e.get("name")).startswith("ProfilerStep#")]
    for e in optimizer:
        inside = [m for m in marks if m["ts"] <= e["ts"] and e["ts"] + e["dur"] <= m["ts"] + m["dur"]]
        assert len(inside) == 1, "a step's boundary lies inside the optimizer's own range"


def test_an_inference_loop_steps_on_the_top_level_module(recorded: Run) -> None:
    source = (
        HEAD + "outer = nn.Sequential(model, nn.Tanh())\nwith torch.no_grad():\n    for _ in range(300): outer(x)\n"
    )
    ran = recorded(source, flags=("--steps", "2"))
    record = ran.timing()["gapless"]
    assert record["step"] == {"on": "forward", "definition": "each call of Sequential"}
    assert "a step is each call of Sequential" in ran.err
    linears = [e for e in ran.timing()["traceEvents"] if e.get("name") == "aten::linear"]
    assert len(linears) == 2 * record["window"]["recorded_steps"]


def test_a_module_is_run_as_python_m_runs_it(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "value.py").write_text("VALUE = 5\n")
    (package / "job.py").write_text(
        "import sys\nfrom .value import VALUE\n" + TRAIN + "train(60)\n"
        "print(VALUE, __name__, __package__, __spec__.name, sys.argv[1:], sys.path[0])\n"
        "print(sys.argv[0] == __file__)\n"
    )
    expected = finish([sys.executable, "-m", "pack.job", "--a", "1"], tmp_path)
    command = [sys.executable, "-m", "gapless", "run", "--no-report", "-o", "out", "--skip", "1", "-m", "pack.job"]
    found = finish([*command, "--a", "1"], tmp_path)
    assert (found.code, found.out) == (expected.code, expected.out), found.err
    assert found.timing()["gapless"]["step"]["on"] == "optimizer"
    assert all(p.name.startswith("job.rank0.") for p in found.files())


def test_an_exception_inside_the_window_still_writes_it(recorded: Run) -> None:
    source = TRAIN + "train(100)\nmodel(x)\nraise KeyError('inside')\n"
    ran = recorded(source, flags=("--skip", "1", "--steps", "500"))
    assert ran.code == 1
    assert [".stack." in path.name for path in ran.files()] == [False, True], "places are known all the same"
    record = ran.timing()["gapless"]
    assert record["window"]["cut"] == "the script raised KeyError"
    assert record["window"]["recorded_steps"] > 0
    assert [e for e in ran.timing()["traceEvents"] if e.get("name") == "aten::linear"]


def test_ctrl_c_inside_the_window_ends_the_script_and_writes_the_window(tmp_path: Path) -> None:
    source = TRAIN + "import time\nwhile True:\n    train(1)\n    time.sleep(0.02)\n    print('step', flush=True)\n"
    (tmp_path / "job.py").write_text(source)
    command = [sys.executable, "-m", "gapless", "run", "--no-report", "-o", "out", "--skip", "1", "--steps", "5000"]
    job = subprocess.Popen(
        [*command, "job.py"], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert job.stdout is not None
    for _ in range(40):
        job.stdout.readline()
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=120)
    assert job.returncode == -signal.SIGINT, err
    assert err.rstrip().endswith("KeyboardInterrupt")
    trace = Ran(0, "", "", tmp_path / "out").timing()
    assert trace["gapless"]["window"]["cut"] == "the script raised KeyboardInterrupt"
    assert len(steps(trace)) >= 5


def test_a_script_that_handles_ctrl_c_itself_still_does(recorded: Run) -> None:
    source = (
        "import os, signal\n"
        + TRAIN
        + """
seen = []
signal.signal(signal.SIGINT, lambda *a: seen.append(1))
for i in range(120):
    train(1)
    if i % 10 == 5: os.kill(os.getpid(), signal.SIGINT)
print(len(seen))
"""
    )
    ran = recorded(source, flags=("--skip", "2"))
    assert (ran.code, ran.out) == (0, "12\n")
    assert len(ran.files()) == 2


def test_a_script_with_its_own_profiler_gets_it(recorded: Run) -> None:
    source = (
        TRAIN
        + """
from torch.profiler import profile, schedule
train(45)
counts = []
ready = lambda p: counts.append(len(p.events()))
with profile(schedule=schedule(wait=2, warmup=1, active=3, repeat=1), on_trace_ready=ready) as p:
    for _ in range(8):
        train(1)
        p.step()
with torch.autograd.profiler.profile() as q:
    train(1)
print(counts[0] > 30, len(q.function_events) > 10)
train(300)
"""
    )
    ran = recorded(source, flags=("--skip", "1", "--steps", "50"))
    assert (ran.code, ran.out) == (0, "True True\n"), ran.err
    window = ran.timing()["gapless"]["window"]
    assert window["cut"] == "the script started its own profiler" or window["recorded_steps"] == 51


def test_nothing_is_overwritten_and_the_rank_is_in_the_name(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(TRAIN + "train(600)\n")
    command = [sys.executable, "-m", "gapless", "run", "--no-report", "-o", "out", "--skip", "1", "--stacks", "never"]
    for _ in range(2):
        ran = finish([*command, "job.py"], tmp_path)
    assert len(ran.files()) == 2
    assert all(p.name.startswith("job.rank0.20") for p in ran.files())


def test_the_environment_of_the_script_and_of_its_children_is_unchanged(plain: Run, recorded: Run) -> None:
    source = (
        "import os, subprocess, sys\nbefore = dict(os.environ)\n"
        + TRAIN
        + "train(150)\n"
        + "print(sorted(set(os.environ.items()) ^ set(before.items())))\n"
        + "print(subprocess.run([sys.executable, '-c', 'import sys; print(sys.argv, \"gapless\" in sys.modules)'],"
        + " capture_output=True, text=True).stdout)\n"
        + "print(sorted(k for k in os.environ if 'GAPLESS' in k or 'KINETO' in k))\n"
    )
    expected, found = plain(source), recorded(source, flags=("--skip", "1"))
    assert found.out == expected.out
    assert len(found.files()) == 2


def test_settings_made_before_torch_is_imported_count(recorded: Run) -> None:
    source = "import os, sys\nassert 'torch' not in sys.modules\nos.environ['OMP_NUM_THREADS'] = '2'\nimport torch\n"
    ran = recorded(source + "print(torch.get_num_threads(), torch.__spec__.loader is torch.__loader__)\n")
    assert ran.out == "2 True\n"
    assert "nothing that repeats was seen" in ran.err
    assert "--step-on time" in ran.err


def test_a_script_without_torch_says_so(recorded: Run) -> None:
    ran = recorded("print('hello')\n")
    assert (ran.code, ran.out) == (0, "hello\n")
    assert "never imported torch" in ran.err


def test_a_profiler_that_cannot_start_leaves_the_script_alone(recorded: Run) -> None:
    source = (
        TRAIN
        + """
import torch.autograd.profiler as profiler
def refuse(*args, **kwargs): raise RuntimeError("no profiler\\ntoday")
profiler._prepare_profiler = refuse
train(100)
print("ran on")
"""
    )
    ran = recorded(source, flags=("--skip", "1"))
    assert (ran.code, ran.out) == (0, "ran on\n")
    assert "gapless: recording stopped, the script runs on: RuntimeError: no profiler today" in ran.err
    assert ran.files() == []


def test_an_output_folder_that_cannot_be_written_leaves_the_script_alone(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(TRAIN + "train(100)\nprint('ran on')\n")
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-m", "gapless", "run", "--no-report", "-o", "file/out", "--skip", "1", "job.py"]
    ran = finish(command, tmp_path)
    assert (ran.code, ran.out) == (0, "ran on\n")
    assert "recording stopped, the script runs on" in ran.err


LOADER = """
from torch.utils.data import DataLoader, TensorDataset
for (batch,) in DataLoader(TensorDataset(torch.randn(16 * {n}, 32)), batch_size=16):
    (batch @ batch.T).relu().sum()
"""
SLEEPY = HEAD + "import time\nfor _ in range({n}):\n    model(x)\n    time.sleep(0.03)\n"


@pytest.mark.parametrize(
    ("source", "on"),
    [
        (TRAIN + "train(12)\n", "optimizer"),
        (HEAD + "for _ in range(14): model(x)\n", "forward"),
        (SLEEPY.format(n=16), "forward"),
        (HEAD + LOADER.format(n=30), "dataloader"),
    ],
)
def test_a_short_script_leaves_a_trace_with_a_baseline(recorded: Run, source: str, on: str) -> None:
    # A busy machine may keep times unsteady for a dozen steps: --skip takes the clock out of the test.
    ran = recorded(source, flags=("--skip", "3"))
    record = ran.timing()["gapless"]
    assert record["step"]["on"] == on
    assert record["window"]["recorded_steps"] >= 1
    assert record["window"]["cut"] == "the script ended"
    assert record["baseline"]["before_ms"][0] > 0
    assert any("ended before the timing window" in note for note in record["notes"])


def test_three_steps_suffice_where_skip_is_zero(recorded: Run) -> None:
    ran = recorded(HEAD + "for _ in range(3): model(x)\n", flags=("--skip", "0", "--step-on", "forward"))
    record = ran.timing()["gapless"]
    assert record["baseline"] is None, "cold steps are no baseline"
    assert record["window"]["recorded_steps"] >= 1


def test_a_script_that_ends_too_soon_is_told_what_to_pass(recorded: Run) -> None:
    ran = recorded(HEAD + "for _ in range(5): model(x)\n")
    assert ran.files() == []
    assert "4 steps were seen, still warming up, and a trace needs about 10" in ran.err
    assert "--step-on forward --skip 0 records from the first step on" in ran.err


def test_slices_of_time_are_recorded_where_nothing_repeats(recorded: Run) -> None:
    source = HEAD + "import time\nend = time.monotonic() + 5\nwhile time.monotonic() < end: x = (x @ x.T @ x).tanh()\n"
    ran = recorded(source, flags=("--step-on", "time", "--skip", "1"))
    trace = ran.timing()
    assert trace["gapless"]["step"] == {"on": "time", "definition": "each 0.5 s of time"}
    assert steps(trace) == []
    assert [e for e in trace["traceEvents"] if e.get("name") == "aten::tanh"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("__main__:absent", "__main__:absent was never defined in this process"),
        ("no.such:function", "no.such:function was never defined in this process"),
        ("__main__:idle", "__main__:idle exists but was never called"),
    ],
)
def test_a_function_that_never_comes_is_named(recorded: Run, name: str, says: str) -> None:
    ran = recorded(TRAIN + "def idle(): pass\ntrain(5)\n", flags=("--step-on", name))
    assert ran.code == 0
    assert f"no trace was written: {says}" in ran.err


def test_step_on_a_function_of_the_script_itself(recorded: Run) -> None:
    source = (
        HEAD + "import time\ndef serve(n):\n    time.sleep(0.003)\n    return model(x)\nfor i in range(80): serve(i)\n"
    )
    ran = recorded(source, flags=("--step-on", "__main__:serve", "--skip", "1", "--steps", "2"))
    record = ran.timing()["gapless"]
    assert record["step"] == {"on": "function", "definition": "each call of __main__:serve"}


def test_garbage_collections_in_the_window_are_written(recorded: Run) -> None:
    source = TRAIN + "import gc\ngc.disable()\nfor i in range(150):\n    train(1)\n    gc.collect(1)\n"
    ran = recorded(source, flags=("--skip", "1", "--steps", "4", "--stacks", "never"))
    trace = ran.timing()
    found = trace["gapless"]["gc"]
    assert {entry["generation"] for entry in found} == {1}
    assert len(found) >= 4
    base = trace["baseTimeNanoseconds"]
    marks = [e for e in trace["traceEvents"] if str(e.get("name")).startswith("ProfilerStep#")]
    low, high = min(e["ts"] for e in marks), max(e["ts"] + e["dur"] for e in marks)
    inside = [e for e in found if low <= (e["start_ns"] - base) / 1e3 <= high]
    assert len(inside) >= 4, "the collections' times are on the trace's own clock"


def test_two_ranks_under_torchrun_record_the_same_steps(tmp_path: Path) -> None:
    source = (
        TRAIN.replace("import torch, torch.nn as nn", "import torch, torch.nn as nn, torch.distributed as dist")
        + """
dist.init_process_group("gloo")
ddp = nn.parallel.DistributedDataParallel(model)
model = ddp
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
train(60)
dist.destroy_process_group()
print("rank done")
"""
    )
    (tmp_path / "job.py").write_text(source)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29611"]
    flags = ["-m", "gapless", "run", "--no-report", "-o", "out", "--steps", "3", "job.py"]
    ran = finish([*launcher, *flags], tmp_path)
    # Without a recorder too torch sometimes aborts while such a process ends (1 of 12 runs of the bare script).
    assert ran.code == 0 or "terminate called without an active exception" in ran.err, ran.err
    assert ran.out.count("rank done") == 2
    traces = {int(p.name.split(".rank")[1][0]): load(p) for p in ran.files() if ".stack." not in p.name}
    assert sorted(traces) == [0, 1]
    assert steps(traces[0]) == steps(traces[1])
    assert [traces[r]["distributedInfo"]["rank"] for r in (0, 1)] == [0, 1]
    assert [traces[r]["gapless"]["environment"]["world_size"] for r in (0, 1)] == [2, 2]


def test_the_report_follows_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(TRAIN + "train(150)\nprint('only this')\n")
    ran = finish([sys.executable, "-m", "gapless", "run", "-o", "out", "--skip", "1", "job.py"], tmp_path)
    assert (ran.code, ran.out) == (0, "only this\n")
    lines = ran.err.splitlines()
    wrote = next(i for i, line in enumerate(lines) if line.startswith("gapless: wrote"))
    follow = next(i for i, line in enumerate(lines) if line.startswith("gapless: next: gapless report"))
    assert follow > wrote + 2, ran.err


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--steps", "0", "job.py"], "--steps 0: nothing could be recorded"),
        (["--step-on", "luck", "job.py"], "--step-on luck: not a step source"),
        ([], "nothing to run"),
        (["nowhere.py"], "can't open file 'nowhere.py'"),
        (["-m", "no.such.module"], "no module named no.such.module"),
    ],
)
def test_usage_errors_are_one_line_and_exit_2(tmp_path: Path, flags: list[str], says: str) -> None:
    ran = finish([sys.executable, "-m", "gapless", "run", *flags], tmp_path)
    assert ran.code == 2
    assert says in ran.err
    assert len(ran.err.splitlines()) == 1, ran.err


def test_stems_are_safe_file_names() -> None:
    assert stem("a/b/train.py") == "train"
    assert stem("../..") == "trace"
    assert stem("-") == "trace"
    assert stem("--lr.py") == "lr"
    assert stem("größe modell.py") == "gr_e_modell"
    assert len(stem("x" * 500)) == 60


def test_a_killed_script_leaves_a_whole_file_once_the_window_has_closed(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(TRAIN + "import os\nwhile True: train(1)\n")
    flags = ["--no-report", "-o", "out", "--skip", "1", "--steps", "2", "--stacks", "never"]
    job = subprocess.Popen(
        [sys.executable, "-m", "gapless", "run", *flags, "job.py"],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 120
        while time.monotonic() < end and not any(p.stat().st_size for p in (tmp_path / "out").glob("*.json.gz")):
            time.sleep(0.05)
    finally:
        os.kill(job.pid, signal.SIGKILL)
        job.wait()
    (path,) = (tmp_path / "out").glob("*.json.gz")
    assert json.loads(gzip.decompress(path.read_bytes()))["gapless"]["role"] == "timing"


def test_a_script_that_raises_keeps_its_exit_code_output_and_file_name(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("print(__file__)\nraise ValueError('mine')\n")
    plain = finish([sys.executable, "job.py"], tmp_path)
    ours = finish([sys.executable, "-m", "gapless", "run", "--no-report", "job.py"], tmp_path)
    assert (ours.code, ours.out) == (plain.code, plain.out) == (1, f"{tmp_path / 'job.py'}\n")
    assert "ValueError: mine" in ours.err
    assert f'File "{tmp_path / "job.py"}", line 2' in ours.err
