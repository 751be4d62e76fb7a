import pytest

torch = pytest.importorskip("torch")

from gapless.runtime.syncs import StandIns, preview_syncs  # noqa: E402

functional = torch.nn.functional


def keys(preview):
    return [(wait.fix.key, wait.count) for wait in preview.waits]


WAITS = {
    "item": lambda x, m, i: x.sum().item(),
    "truth-test": lambda x, m, i: bool(x[0] > 0),
    "tolist": lambda x, m, i: x.tolist(),
    "numpy": lambda x, m, i: x.numpy(),
    "format": lambda x, m, i: f"{x[0]:.2f}",
    "contains": lambda x, m, i: 1.0 in x,
    "equal": lambda x, m, i: torch.equal(x, x),
    "allclose": lambda x, m, i: torch.allclose(x, x),
    "index-by-scalar": lambda x, m, i: x[i[0]],
    "one-hot": lambda x, m, i: functional.one_hot(i),
    "nonzero": lambda x, m, i: torch.where(m),
    "masked-read": lambda x, m, i: x[m].sum(),
    "masked-write": lambda x, m, i: x.__setitem__(m, x[:2]),
    "unique": lambda x, m, i: torch.unique(i, return_counts=True),
    "bincount": lambda x, m, i: i.bincount(),
    "repeat-interleave": lambda x, m, i: i.repeat_interleave(i),
    "readback": lambda x, m, i: x.to("cpu"),
    "pageable-readback": lambda x, m, i: torch.empty(8).copy_(x, non_blocking=True),
    "upload": lambda x, m, i: torch.ones(3).to(x.device),
    "pageable-upload": lambda x, m, i: torch.ones(3).cuda(non_blocking=True),
    "small-upload": lambda x, m, i: torch.tensor([1.0, 2.0], device=x.device),
    "pin-in-step": lambda x, m, i: torch.ones(3).pin_memory().to(x.device, non_blocking=True),
}


@pytest.fixture
def inputs():
    x = torch.randn(8)
    return x, x > 0, torch.arange(8)


@pytest.mark.parametrize("key", WAITS)
def test_each_idiom_is_predicted_under_its_own_name(inputs, key):
    preview = preview_syncs(WAITS[key], *inputs)
    assert keys(preview) == [(key, 1)]
    assert preview.stopped == ""
    assert preview.waits[0].file == __file__


@pytest.mark.parametrize(
    "quiet",
    [
        lambda x, m, i: x.masked_fill(m, 0.0),
        lambda x, m, i: x.__setitem__(m, 1.0),
        lambda x, m, i: i.repeat_interleave(i, output_size=28),
        lambda x, m, i: x.to("cpu", non_blocking=True),
        lambda x, m, i: torch.full((3,), 1.0, device="cuda") + x[:3],
        lambda x, m, i: torch.ones(3).sum().item(),
        lambda x, m, i: x.to(torch.float16),
        lambda x, m, i: torch.multinomial(x.abs(), 2),
        lambda x, m, i: torch.nn.utils.clip_grad_norm_([torch.nn.Parameter(x)], 1.0),
    ],
)
def test_what_does_not_wait_is_not_predicted(inputs, quiet):
    preview = preview_syncs(quiet, *inputs)
    assert (keys(preview), preview.stopped) == ([], "")


def test_it_goes_on_behind_the_first_wait(inputs):
    def step(x, m, i):
        kept = x[m]
        if kept.sum() > 0:
            kept = kept * 2
        return kept.mean().item()

    assert [key for key, _ in keys(preview_syncs(step, *inputs))] == ["masked-read", "truth-test", "item"]


def test_stand_ins_choose_branch_and_size(inputs):
    seen = []

    def step(x, m, i):
        seen.append(x[m].shape[0])
        return x.sum().item() if m.any() else 0

    without = preview_syncs(step, *inputs, stand_ins=StandIns(truth=False, size=7))
    assert [key for key, _ in keys(without)] == ["masked-read", "truth-test"]
    assert seen == [7]


def test_a_loop_over_a_value_is_left(inputs):
    def loop(x, m, i):
        while x.sum().item() < 5:
            x = x + 1

    preview = preview_syncs(loop, *inputs)
    assert "a loop that ends on a value" in preview.stopped
    assert preview.waits[0].count == 1000


def test_an_exception_is_told_with_what_was_found_before(inputs):
    def fails(x, m, i):
        x.sum().item()
        raise KeyError("late")

    preview = preview_syncs(fails, *inputs)
    assert keys(preview) == [("item", 1)]
    assert preview.stopped == "KeyError: 'late'"
    assert "stopped early" in preview.text()


def test_a_training_step_leaves_model_gradients_and_optimizer_as_they_were():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.AdamW(net.parameters())
    net(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    gradients = [parameter.grad for parameter in net.parameters()]
    state = {key: dict(value) for key, value in optimizer.state.items()}

    def step(batch):
        loss = net(batch).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    preview = preview_syncs(step, torch.randn(2, 4))
    assert (keys(preview), preview.stopped) == ([("item", 1)], "")
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    assert all(a.grad is b for a, b in zip(net.parameters(), gradients, strict=True))
    assert {key: {name: id(item) for name, item in value.items()} for key, value in optimizer.state.items()} == {
        key: {name: id(item) for name, item in value.items()} for key, value in state.items()
    }
    assert step(torch.randn(2, 4)) != 0


def test_module_path_is_named():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = torch.nn.Linear(4, 1)
            self.gate.register_forward_hook(lambda module, args, out: out.sum().item())

        def forward(self, x):
            return self.gate(x)

    (wait,) = preview_syncs(Net(), torch.randn(2, 4)).waits
    assert wait.module == "Net.gate"
