import threading
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.optim.optimizer import _global_optimizer_post_hooks  # noqa: E402

from gapless.model.errors import UsageError  # noqa: E402
from gapless.runtime.syncs import HiddenSyncError, watch_syncs  # noqa: E402

GPU = torch.device("meta")


def line_of(finding):
    return Path(finding.file).read_text().splitlines()[finding.line - 1]


def test_item_is_found_with_line_expression_stall_and_fix(gpu):
    loss = torch.empty((), device=GPU)
    with gpu.watch() as watch:
        gpu.queue.launch()
        value = loss.item()
    (finding,) = watch.report().hidden
    assert value == 1.0
    assert finding.file == __file__
    assert line_of(finding).strip() == "value = loss.item()"
    assert finding.expression == "loss.item()"
    assert finding.stall_ms > 0
    assert finding.waited_ms > 0
    assert finding.already_idle == 0
    assert (finding.idiom, finding.op, finding.fix_key) == ("Tensor.item", "aten::_local_scalar_dense", "item")
    assert finding.evidence == "ABC"
    assert finding.counts == [1]


def test_a_free_wait_is_said_to_be_free(gpu):
    with gpu.watch() as watch:
        torch.empty((), device=GPU).item()
    (finding,) = watch.report().hidden
    assert finding.already_idle == 1.0
    assert "already idle 100%" in finding.head()


@pytest.mark.parametrize(
    ("key", "idiom"),
    [
        ("truth-test", lambda x, mask: bool(x.sum() > 0)),
        ("contains", lambda x, mask: 1.0 in x),
        ("nonzero", lambda x, mask: mask.nonzero()),
        ("masked-read", lambda x, mask: x[mask]),
        ("readback", lambda x, mask: x.cpu()),
        ("readback", lambda x, mask: x.to("cpu")),
        ("pageable-readback", lambda x, mask: torch.zeros(4).copy_(x, non_blocking=True)),
        ("readback", lambda x, mask: torch.zeros(4).copy_(x)),
        ("upload", lambda x, mask: torch.zeros(1 << 16).to(GPU)),
        ("pageable-upload", lambda x, mask: torch.zeros(1 << 16).to(GPU, non_blocking=True)),
    ],
)
def test_idioms_that_stall_are_found_with_their_own_fix(gpu, key, idiom):
    x, mask = torch.empty(4, device=GPU), torch.empty(4, dtype=torch.bool, device=GPU)
    with gpu.watch() as watch:
        gpu.queue.launch()
        idiom(x, mask)
    findings = watch.report().hidden
    assert {finding.fix_key for finding in findings} == {key}
    assert all(finding.file == __file__ for finding in findings)


@pytest.mark.parametrize(
    "idiom",
    [
        lambda x, mask, gpu: x.to("cpu", non_blocking=True),
        lambda x, mask, gpu: gpu.backend.pin(torch.zeros(4)).copy_(x, non_blocking=True),
        lambda x, mask, gpu: gpu.backend.pin(torch.zeros(1 << 16)).to(GPU, non_blocking=True),
        lambda x, mask, gpu: x.masked_fill(mask, 0.0),
        lambda x, mask, gpu: x + 1,
        lambda x, mask, gpu: torch.zeros(4)[torch.zeros(4, dtype=torch.bool)],
        lambda x, mask, gpu: torch.zeros(()).item(),
    ],
)
def test_what_does_not_wait_is_not_reported(gpu, idiom):
    x, mask = torch.empty(4, device=GPU), torch.empty(4, dtype=torch.bool, device=GPU)
    with gpu.watch() as watch:
        gpu.queue.launch()
        idiom(x, mask, gpu)
    assert watch.report().hidden == []


def test_small_upload_that_returns_at_once_is_no_finding(gpu):
    torch.ones(4)
    with gpu.watch() as watch:
        torch.ones(4).to(GPU, non_blocking=True)
    assert watch.report().hidden == []


def test_adamw_on_the_cpu_does_not_cry_wolf(gpu):
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    with gpu.watch() as watch:
        torch.optim.AdamW([parameter], foreach=False).step()
    assert watch.report().hidden == []


def test_explicit_waits_are_listed_apart(gpu):
    with gpu.watch() as watch:
        gpu.queue.launch()
        gpu.synchronize()
    report = watch.report()
    assert report.hidden == []
    (finding,) = report.explicit
    assert finding.kind == "device"
    assert finding.stall_ms > 0
    assert "asked for" in report.text()


def test_steps_end_with_the_first_optimizer_and_warmup_is_left_out(gpu):
    parameter = torch.nn.Parameter(torch.ones(3))
    first, second = torch.optim.SGD([parameter], lr=0.0), torch.optim.SGD([parameter], lr=0.0)
    loss = torch.empty((), device=GPU)
    with gpu.watch(warmup=2) as watch:
        for index in range(5):
            for _ in range(2 if index == 4 else 1):
                loss.item()
            second.step()
            first.step()
    report = watch.report()
    assert report.steps == 3
    assert report.hidden[0].counts == [1, 1, 2]
    assert report.step_source == "steps end with the optimizer's step"


def test_counts_that_vary_are_said_to_vary(gpu):
    loss = torch.empty((), device=GPU)
    with gpu.watch(warmup=1) as watch:
        for count in (9, 1, 2, 1):
            for _ in range(count):
                loss.item()
            watch.step()
    (finding,) = watch.report().hidden
    assert finding.counts == [1, 2, 1]
    assert finding.varies
    assert "varies: 1,2,1" in finding.head()
    assert watch.report().outside == 9


def test_waits_in_warmup_are_not_counted_but_mentioned(gpu):
    loss = torch.empty((), device=GPU)
    with gpu.watch(warmup=1) as watch:
        loss.item()
        watch.step()
        watch.step()
    report = watch.report()
    assert report.hidden == []
    assert report.outside == 1
    assert any("not counted" in note for note in report.notes)


def test_allow_list_by_line_function_kind_and_fix(gpu):
    x = torch.empty(4, device=GPU)

    def log():
        return x.sum().item()

    line = log.__code__.co_firstlineno + 1
    for entry in (f"test_syncs_watch.py:{line}", "test_syncs_watch.py", f"{__name__}.*log", "kind:stream", "fix:item"):
        with gpu.watch(allow={entry}) as watch:
            log()
        report = watch.report()
        assert report.hidden == [], entry
        assert len(report.allowed) == 1, entry


@pytest.mark.parametrize(("value", "raises"), [("raise", True), (" Raise ", True), ("report", False), ("", True)])
def test_the_environment_overrides_what_the_code_says(gpu, monkeypatch, value, raises):
    written = "report" if value.strip() else "raise"
    watch = gpu.watch(on="raise" if value == "report" else written, warmup=0)
    monkeypatch.setenv("GAPLESS_SYNCS", value)
    try:
        with watch:
            torch.empty((), device=GPU).item()
    except HiddenSyncError:
        assert raises
    else:
        assert not raises
        assert len(watch.report().hidden) == 1


def test_the_environment_switches_watches_off_and_on_again(gpu, monkeypatch):
    monkeypatch.setenv("GAPLESS_SYNCS", "off")
    watch = gpu.watch(on="raise", warmup=0)
    with watch:
        assert torch.overrides._get_current_function_mode() is None
        torch.empty((), device=GPU).item()
    report = watch.report()
    assert report.hidden == [] and report.layers == ""
    assert "GAPLESS_SYNCS=off" in report.text()
    monkeypatch.delenv("GAPLESS_SYNCS")
    with pytest.raises(HiddenSyncError), watch:
        torch.empty((), device=GPU).item()


def test_a_switch_that_is_none_is_refused_in_one_line(gpu, monkeypatch):
    monkeypatch.setenv("GAPLESS_SYNCS", "loud")
    with pytest.raises(UsageError, match="'loud' is not off, report, warn or raise"), gpu.watch():
        pass


def test_raise_stops_at_the_op_and_names_line_and_fix(gpu):
    x = torch.empty(4, device=GPU)
    reached = False
    message = r"test_syncs_watch\.py:\d+: `x\.sum\(\)\.item\(\)` waited"
    with pytest.raises(HiddenSyncError, match=message), gpu.watch(on="raise", warmup=0):
        x.sum().item()
        reached = True
    assert not reached


def test_budget_allows_so_many_and_no_more(gpu):
    x = torch.empty(4, device=GPU)
    with gpu.watch(on="raise", budget=2, warmup=0) as watch:
        for _ in range(3):
            x.sum().item()
            x.sum().item()
            watch.step()
    with pytest.raises(HiddenSyncError, match="budget of 1 "), gpu.watch(on="raise", budget=1, warmup=0):
        x.sum().item()
        x.sum().item()


def test_warn_speaks_once_at_the_end(gpu):
    x = torch.empty(4, device=GPU)
    message = "more often than the budget of 0"
    with pytest.warns(RuntimeWarning, match=message) as caught, gpu.watch(on="warn", warmup=0):
        x.sum().item()
        x.sum().item()
    assert len(caught) == 1


def test_a_user_error_inside_is_not_replaced(gpu):
    x = torch.empty(4, device=GPU)
    with pytest.raises(ZeroDivisionError), gpu.watch(on="warn", warmup=0):
        x.sum().item()
        raise ZeroDivisionError


def test_everything_is_put_back_after_an_exception(gpu):
    before = (
        torch.compile,
        warnings.showwarning,
        list(warnings.filters),
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
        _global_optimizer_post_hooks.copy(),
    )
    with pytest.raises(ValueError, match="boom"), gpu.watch():
        raise ValueError("boom")
    after = (
        torch.compile,
        warnings.showwarning,
        list(warnings.filters),
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
        _global_optimizer_post_hooks.copy(),
    )
    assert before == after
    assert gpu.trace._listeners == ()
    torch.empty((), device=GPU).item()
    assert gpu.driver.waits == []


def test_modes_of_the_user_survive_around_and_inside(gpu):
    class Doubler(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is torch.add else result

    with Doubler(), gpu.watch(), Doubler():
        assert torch.add(torch.ones(1), 1).item() == 8.0
    assert torch.add(torch.ones(1), 1).item() == 2.0


@pytest.fixture
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_using_compile_takes_the_source_layer_away_and_keeps_graphs_clean(gpu, fresh_dynamo):
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph

    with gpu.watch() as watch:
        compiled = torch.compile(lambda x: x.sin() + 1, backend=backend)
        for _ in range(3):
            compiled(torch.ones(3))
    compiled(torch.ones(3))
    assert len(graphs) == 1
    report = watch.report()
    assert "A" not in report.layers
    assert any("torch.compile is in use" in note for note in report.notes)


def test_other_threads_are_seen_by_the_trace_hook(gpu):
    def worker():
        gpu.trace.fire("stream", 3)

    with gpu.watch() as watch:
        gpu.queue.launch()
        thread = threading.Thread(target=worker, name="loader-7")
        thread.start()
        thread.join()
    (finding,) = watch.report().hidden
    assert finding.threads == ["loader-7"]
    assert finding.evidence == "C"
    assert finding.stall_ms > 0


def test_warnings_of_torchs_own_detector_confirm_or_add(gpu):
    x = torch.empty((), device=GPU)
    with gpu.watch() as watch:
        recorder = watch._recorder
        x.item()
        recorder.on_debug_warning()
        recorder.on_debug_warning()
    seen, unseen = sorted(watch.report().hidden, key=lambda finding: finding.line)
    assert seen.evidence == "ABCD"
    assert (unseen.evidence, unseen.waited_ms) == ("D", None)
    assert "time not measured" in unseen.head()


def test_a_warning_that_another_thread_caused_adds_nothing(gpu):
    x = torch.empty((), device=GPU)
    with gpu.watch() as watch:
        x.item()
        thread = threading.Thread(target=watch._recorder.on_debug_warning)
        thread.start()
        thread.join()
    assert len(watch.report().hidden) == 1


def test_a_wait_in_autograds_own_thread_names_the_node(gpu, monkeypatch):
    from gapless.runtime.syncs import frames

    node = torch.ones(1, requires_grad=True).exp().grad_fn
    monkeypatch.setattr(torch._C, "_current_autograd_node", lambda: node)
    site = frames.locate(None).site
    assert (str(site), site.expression()) == ("backward pass", "ExpBackward0")


def test_module_path_names_the_running_module(gpu):
    class Gate(torch.nn.Module):
        def forward(self, x):
            return x * 2 if x.sum().item() > 0 else x

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([Gate(), Gate()])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    with gpu.watch() as watch:
        Net()(torch.empty(4, device=GPU))
    (finding,) = watch.report().hidden
    assert finding.modules == ["Net.layers.0", "Net.layers.1"]
    assert finding.counts == [2]
    assert "module Net.layers.0 and 1 more" in watch.report().text()


def test_gpu_table_indexed_from_the_cpu_is_named_so(gpu):
    from gapless.runtime.syncs.copies import find_copy
    from gapless.runtime.syncs.fixes import fix_of

    table, index = torch.empty(4, device=GPU), torch.tensor([0, 2])
    copy = find_copy(torch.ops.aten.index.Tensor, (table, [index]), {}, gpu.backend)
    assert copy.direction == "HtoD"
    assert fix_of(("Tensor.__getitem__", "aten::index", *copy.names()), "stream").key == "host-index"


def test_hooks_are_held_only_while_ops_run(gpu):
    log = []

    class Switch:
        def hold(self):
            log.append(1)

        def release(self):
            log.append(-1)

    gpu.trace._switch = Switch()
    x = torch.empty((), device=GPU)
    original = torch.cuda.synchronize
    with gpu.watch() as watch:
        assert sum(log) == 0
        assert torch.cuda.synchronize is not original
        x.item()
        with pytest.raises(RuntimeError):
            x + torch.ones(2)[:, None, None] @ torch.ones(3)
        assert sum(log) == 0
    assert log
    assert torch.cuda.synchronize is original
    assert len(watch.report().hidden) == 1
    log.clear()
    with gpu.watch(layers="C"):
        assert log == [1]
    assert log == [1, -1]


def test_phases_label_waits(gpu):
    with gpu.watch() as watch, watch.phase("logging"):
        torch.empty((), device=GPU).item()
    assert watch.report().hidden[0].phases == ["logging"]


def test_report_is_json_and_tells_its_own_cost(gpu):
    import json

    with gpu.watch() as watch:
        torch.empty((), device=GPU).item()
    report = watch.report()
    data = json.loads(json.dumps(report.to_dict()))
    assert data["schema"] == "gapless.syncs/1"
    assert data["hidden"][0]["fix_key"] == "item"
    assert report.overhead.calls >= 3
    assert "watching cost at least" in report.text()


def test_syncs_watch_is_a_decorator_and_starts_afresh_each_time(gpu):
    watch = gpu.watch()

    @watch
    def run():
        torch.empty((), device=GPU).item()

    run()
    run()
    assert watch.report().hidden[0].counts == [1]


def test_one_watch_cannot_run_twice_at_once(gpu):
    watch = gpu.watch()
    with watch, pytest.raises(UsageError, match="already running"):
        watch.__enter__()


def test_nested_watches_both_see(gpu):
    with gpu.watch() as outer, gpu.watch() as inner:
        torch.empty((), device=GPU).item()
    assert len(outer.report().hidden) == len(inner.report().hidden) == 1


def test_bad_settings_are_refused():
    with pytest.raises(UsageError, match="on='shout'"):
        watch_syncs(on="shout")
    with pytest.raises(UsageError, match="negative"):
        watch_syncs(budget=-1)
    with pytest.raises(UsageError, match="layers='AX'"):
        watch_syncs(layers="AX")


def test_without_a_gpu_it_says_so_and_harms_nothing():
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with watch_syncs() as watch:
        total = torch.ones(3).sum().item()
    report = watch.report()
    assert total == 3.0
    assert report.hidden == []
    assert any("no GPU here" in note for note in report.notes)


def test_backward_is_seen_through(gpu):
    class Check(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            torch.empty((), device=GPU).item()
            return gradient

    with gpu.watch() as watch:
        Check.apply(torch.ones(3, requires_grad=True)).sum().backward()
    (finding,) = watch.report().hidden
    assert line_of(finding).strip() == "torch.empty((), device=GPU).item()"
