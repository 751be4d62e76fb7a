"""Is compiled code that is cut, called too often, compiled again or tuned again named, with what its fix brings?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from gapless.rules import autotuning, compile_overhead, graph_break, recompilation
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Unknown

from .factory import BF16_CONV, BF16_GEMM, MUL, Script, context, context_of, record
from .gains import found, gain, gains

FUSED = "triton_poi_fused_add_mul_0"


@contextmanager
def region(
    t: Script,
    name: str = "Torch-Compiled Region: 0/0",
    body: str = "## Call CompiledFxGraph f0 ##",
    guard_us: float = 60,
) -> Iterator[None]:
    with t.op("TorchDynamo Cache Lookup"):
        t.python(guard_us)
    with t.op(name):
        with t.op("AOTDispatcher Runtime Wrapper Prologue"):
            t.python(guard_us)
        with t.op(body):
            t.python(40)
            yield


def fused(t: Script, us: float = 1) -> None:
    with t.op(FUSED):
        t.kernel(FUSED, us)


def product(t: Script) -> None:
    with t.op("aten::mm"):
        t.python(30)
        t.kernel(BF16_GEMM, 3)


def read_value(t: Script) -> None:
    with t.op("aten::item"), t.op("aten::_local_scalar_dense"):
        t.synchronize()


def small_calls(t: Script, count: int = 20, guard_us: float = 60) -> None:
    for _ in range(count):
        with region(t, guard_us=guard_us):
            fused(t)


# ---- many small calls ------------------------------------------------------------------------------------------------
def test_small_calls_in_a_row_become_one() -> None:
    c = context(small_calls)
    one = found(compile_overhead.check(c))
    low, middle, _ = gains(c, one)
    assert 1.5 < low < middle
    assert middle > 8
    assert "20 calls" in one.title


def test_one_call_is_what_compiling_costs() -> None:
    assert isinstance(compile_overhead.check(context(lambda t: small_calls(t, 1, 30))), Clean)


def test_calls_behind_a_busy_gpu_are_free() -> None:
    def step(t: Script) -> None:
        for _ in range(5):
            with region(t):
                fused(t, 2_000)

    assert isinstance(compile_overhead.check(context(step)), Clean)


@pytest.mark.parametrize("between", ["autograd::engine::evaluate_function: MulBackward0", "Optimizer.step#SGD.step"])
def test_a_model_and_an_optimizer_are_no_row_of_calls(between: str) -> None:
    def step(t: Script) -> None:
        for _ in range(2):
            with region(t, guard_us=20):
                fused(t)
            with t.op(between):
                t.python(50)
                t.simple("aten::mul", [], MUL, 1)

    assert isinstance(compile_overhead.check(context(step)), Clean)


def test_regions_without_a_number_or_name_of_a_body() -> None:
    """Older versions write no compile id and no row for the graph."""

    def step(t: Script) -> None:
        for _ in range(10):
            with region(t, "Torch-Compiled Region", "inductor call"):
                fused(t)

    c = context(step)
    assert gain(c, found(compile_overhead.check(c)).edit) > 2


def one_product(t: Script, generated: bool) -> None:
    with region(t, guard_us=45):
        product(t)
        if generated:
            fused(t)


def test_a_compiled_product_is_better_left_alone() -> None:
    """Nothing is fused: the article's `torch.compile` of a small matmul makes it slower."""
    c = context(lambda t: one_product(t, False))
    one = found(compile_overhead.check(c))
    low, middle, _ = gains(c, one)
    assert 1 < low <= middle
    assert "fuses nothing" in one.title


def test_a_generated_kernel_is_what_compiling_is_for() -> None:
    assert isinstance(compile_overhead.check(context(lambda t: one_product(t, True))), Clean)


# ---- graph breaks ----------------------------------------------------------------------------------------------------
def broken(t: Script, work: int = 0, depth: int = 4) -> None:
    with t.op("TorchDynamo Cache Lookup"):
        t.python(60)
    with t.op(f"Torch-Compiled Region: {4 - depth}/0"):
        t.python(60)
        with t.op("## Call CompiledFxGraph f0 ##"):
            for _ in range(work):
                product(t)
            fused(t)
        if depth > 1:
            broken(t, work, depth - 1)


def test_regions_inside_regions_are_breaks() -> None:
    c = context(broken)
    one = found(graph_break.check(c))
    low, middle, high = gains(c, one)
    assert 1 < low < middle < high
    assert middle > 2
    assert "3 times a step" in one.title


def test_products_keep_their_time() -> None:
    """What no compiler fuses still has to be launched: merging the pieces of a function full of products brings less."""
    few, many = context(broken), context(lambda t: broken(t, 8))
    assert gain(many, found(graph_break.check(many)).edit) < 0.6 * gain(few, found(graph_break.check(few)).edit)


def test_what_a_compiler_left_apart_stays_apart() -> None:
    """Two kernels of one graph were not fused by the compiler that saw both: merging the pieces does not fuse them."""

    def step(t: Script) -> None:
        with region(t):
            for _ in range(10):
                fused(t, 400)
        read_value(t)

    def pieces(t: Script) -> None:
        with t.op("Torch-Compiled Region: 0/0"):
            t.python(20)
            step(t)

    c = context(pieces)
    assert gain(c, found(graph_break.check(c)).edit) < 1.1


def cut(t: Script, count: int) -> None:
    for _ in range(count):
        with region(t, "Torch-Compiled Region: 1/0"):
            product(t)
            fused(t)
        t.simple("aten::mean", [], MUL, 1)
        read_value(t)


def test_break_by_item() -> None:
    """A loop with `.item()` in it is skipped, and the blocks it calls are compiled one by one: nothing is nested."""
    c = context(lambda t: cut(t, 6))
    one = found(graph_break.check(c))
    low, middle, _ = gains(c, one)
    assert 1 < low < middle
    assert "cut apart by 5 waits" in one.title


def test_a_model_a_loss_and_an_optimizer_are_not_cut() -> None:
    assert isinstance(graph_break.check(context(lambda t: cut(t, 2))), Clean)


def test_regions_with_much_eager_work_between_are_calls_of_their_own() -> None:
    def step(t: Script) -> None:
        for _ in range(5):
            cut(t, 1)
            for _ in range(10):
                t.simple("aten::mul", [], MUL, 1)

    assert isinstance(graph_break.check(context(step)), Clean)


def test_an_eager_program_is_not_accused() -> None:
    """Where Dynamo gave up, a trace without stacks looks like a program that never heard of it."""
    one = graph_break.check(context(lambda t: [t.simple("aten::mul", [], MUL, 1) for _ in range(30)] and None))
    assert isinstance(one, Unknown)
    assert "stack" in one.how


WRAPPER = "torch/_dynamo/eval_frame.py(1044): compile_wrapper"


def half_compiled(t: Script, calls: int = 2, breaks: int = 3) -> None:
    """A compiled function that works, and one, called more than once, that Dynamo gave up."""
    with t.frame("train.py(10): main"):
        with t.frame(WRAPPER), region(t):
            fused(t)
        for _ in range(calls):
            with t.frame(WRAPPER), t.frame("train.py(20): broken"), t.frame(WRAPPER):
                for _ in range(breaks):
                    for _ in range(6):
                        t.simple("aten::mul", [], MUL, 1)
                    with t.frame("torch/_dynamo/decorators.py(600): graph_break"):
                        t.python(1)
        for _ in range(5):
            t.simple("aten::add", [], MUL, 1)


def healthy(t: Script) -> None:
    with t.frame("train.py(10): main"):
        for _ in range(3):
            with t.frame(WRAPPER), region(t):
                fused(t)
        t.simple("aten::mul", [], MUL, 1)
        with t.frame(WRAPPER):
            t.python(5)


def uncompiled(t: Script) -> None:
    with t.frame("train.py(10): main"):
        for _ in range(30):
            t.simple("aten::mul", [], MUL, 1)


@pytest.mark.parametrize("beside", [False, True])
def test_a_function_that_dynamo_gave_up_is_found_beside_one_that_is_compiled(beside: bool) -> None:
    seen = record(half_compiled, stacks=True)
    c = context_of(record(half_compiled), seen) if beside else context_of(seen)
    one = found(graph_break.check(c))
    assert "gave up" in one.title
    assert any(text.startswith("2 calls a step") for text in one.evidence), one.evidence
    assert any("graph_break() is called 6 times a step" in text for text in one.evidence), one.evidence
    assert {(site.place.file, site.place.line) for site in one.sites} == {("train.py", 20)}
    low, middle, _ = gains(c, one)
    assert middle > 1.5
    edited = one.edit(c.program) if one.edit is not None else c.program
    assert edited.act_row.size < c.program.act_row.size - 20, "the calls' kernels become few, what lies outside stays"
    assert low >= 0.9


@pytest.mark.parametrize("program", [healthy, uncompiled])
@pytest.mark.parametrize("beside", [False, True])
def test_stacks_of_a_program_without_breaks_accuse_nobody(program: Callable[[Script], None], beside: bool) -> None:
    seen = record(program, stacks=True)
    c = context_of(record(program), seen) if beside else context_of(seen)
    assert isinstance(graph_break.check(c), Clean)


def test_frames_of_another_program_are_not_used() -> None:
    c = context_of(record(uncompiled), record(healthy, stacks=True))
    assert c.stacks is None
    assert isinstance(graph_break.check(c), Unknown)


# ---- compiling again -------------------------------------------------------------------------------------------------
def compiling(t: Script, trials: int = 0) -> None:
    with t.op("TorchDynamo Cache Lookup"):
        t.python(20)
    with t.op("dynamo"):
        t.python(100)
        with t.op("_compile.compile_inner (dynamo_timed)"):
            t.python(20_000)
    t.python(500)
    with t.op("Torch-Compiled Region: 0/9"):
        t.python(60)
        if trials:
            with t.op("CachingAutotuner.benchmark_all_configs (dynamo_timed)"):
                for _ in range(trials):
                    t.kernel(FUSED, 20)
                    t.python(20)
                t.synchronize()
        t.python(300)
        fused(t)


@pytest.mark.parametrize("trials", [0, 200])
def test_recompilation_leaves_one_call(trials: int) -> None:
    """Neither what tuning ran nor the slow first call stays once the function is compiled."""
    c = context(lambda t: compiling(t, trials))
    one = found(recompilation.check(c))
    low, middle, _ = gains(c, one)
    assert low > 5
    assert middle > 100
    assert "4 of 4" in one.title or "3 of 3" in one.title


def test_graphs_recorded_anew_are_named() -> None:
    def step(t: Script) -> None:
        with region(t):
            with t.op("cudagraphify.get_container (dynamo_timed)"):
                t.python(20)
            t.python(3_000)
            for _ in range(5):
                product(t)

    one = found(recompilation.check(context(step)))
    assert one.title.startswith("CUDA graphs are prepared anew")


def test_a_look_up_that_costs_nothing_is_no_recompilation() -> None:
    def step(t: Script) -> None:
        with region(t):
            with t.op("get_something (dynamo_timed)"):
                t.python(5)
            fused(t)

    assert isinstance(recompilation.check(context(step)), Clean)


def test_recompile_limit() -> None:
    """A guard check that eager operators follow: no version fits and none is compiled any more."""

    def step(t: Script) -> None:
        with t.op("TorchDynamo Cache Lookup"):
            t.python(60)
        for _ in range(8):
            t.simple("aten::mul", [], MUL, 1)

    c = context(step)
    one = found(recompilation.check(c))
    assert one.title.startswith("torch.compile no longer compiles: 1 call a step")
    assert gain(c, one.edit) > 1.3


def test_guard_checks_before_regions_are_healthy() -> None:
    assert isinstance(recompilation.check(context(small_calls)), Clean)


# ---- tuning ----------------------------------------------------------------------------------------------------------
def search(t: Script, trials: int) -> None:
    with t.op("aten::conv2d"), t.op("aten::cudnn_convolution"):
        t.python(5_000)
        for _ in range(trials):
            t.call("cudaEventRecord", 2)
            t.kernel(BF16_CONV, 8)
            t.call("cudaEventRecord", 2)
            t.call("cudaEventSynchronize", 20)
        t.kernel(BF16_CONV, 8)


def test_a_convolution_that_tries_algorithms() -> None:
    c = context(lambda t: search(t, 6))
    low, middle, high = gains(c, found(autotuning.check(c)))
    assert 2 < low <= middle < high


def test_a_convolution_that_runs() -> None:
    assert isinstance(autotuning.check(context(lambda t: search(t, 0))), Clean)


def timed(t: Script, count: int, *, clear: bool) -> None:
    t.simple("aten::mul", [], MUL, 1)
    for _ in range(count):
        if clear:
            t.simple("aten::zero_", [], MUL, 50)
        t.call("cudaEventRecord", 2)
        t.kernel("_scale", 2)
        t.call("cudaEventRecord", 2)
    t.synchronize()
    t.kernel("_scale", 2)


def test_timed_launches_with_a_cleared_cache_are_tuning() -> None:
    c = context(lambda t: timed(t, 100, clear=True))
    assert gain(c, found(autotuning.check(c)).edit) > 20


@pytest.mark.parametrize(("count", "clear"), [(100, False), (5, True)])
def test_who_times_layers_does_not_tune(count: int, clear: bool) -> None:
    assert isinstance(autotuning.check(context(lambda t: timed(t, count, clear=clear))), Clean)


def test_nothing_is_said_of_programs_that_compile_nothing(eager: Context) -> None:
    for rule in (autotuning, compile_overhead, recompilation):
        assert isinstance(rule.check(eager), Clean)


@pytest.fixture
def eager() -> Context:
    return context(lambda t: [product(t) for _ in range(20)] and None)
