"""The table of waits: every key is unique, every chain finds the op to change, every rewrite is code that runs."""

import pytest

import gapless
from gapless.model.sync_fixes import SYNC_FIXES, copy_name, fix_by_key, fix_for


def test_keys_are_unique_and_every_entry_is_complete():
    keys = [fix.key for fix in SYNC_FIXES]
    assert len(set(keys)) == len(keys)
    for fix in SYNC_FIXES:
        assert fix.reason.endswith("."), fix.key
        assert fix.rewrite, fix.key
        assert fix.dependency in ("true", "false")
        assert fix_by_key(fix.key) is fix


@pytest.mark.parametrize(
    ("chain", "key"),
    [
        (["aten::item", "aten::_local_scalar_dense"], "item"),
        (["aten::_local_scalar_dense"], "scalar-read"),
        (["aten::is_nonzero", "aten::item", "aten::_local_scalar_dense"], "truth-test"),
        (["aten::repeat_interleave", "aten::item", "aten::_local_scalar_dense"], "repeat-interleave"),
        (["aten::index", "aten::nonzero", "copy:DtoH"], "masked-read"),
        (["aten::index", "aten::to", "aten::_to_copy", "aten::copy_", "copy:HtoD"], "host-index"),
        (["aten::index_put_", "aten::_index_put_impl_", "aten::nonzero"], "masked-write"),
        (["aten::to", "aten::_to_copy", "aten::copy_", "copy:HtoD"], "upload"),
        (["aten::to", "aten::_to_copy", "aten::copy_", "copy:DtoH"], "readback"),
        (["aten::one_hot", "aten::item"], "one-hot"),
        (["Tensor.__getitem__", "aten::_local_scalar_dense"], "index-by-scalar"),
        (["Tensor.__getitem__", "aten::index"], "masked-read"),
        (["GradScaler.step", "Tensor.item"], "grad-scaler"),
        (["cudaFree"], "empty-cache"),
        (["hipMemcpyWithStream"], "blocking-memcpy"),
    ],
)
def test_the_op_to_change_is_named(chain, key):
    assert fix_for(chain).key == key


def test_unknown_ops_have_no_entry():
    assert fix_for(["aten::mm", "aten::addmm"]) is None
    assert fix_for([]) is None


def test_copies_are_told_apart():
    assert fix_for([copy_name("HtoD", pinned=False, non_blocking=True)]).key == "pageable-upload"
    assert fix_for([copy_name("DtoH", pinned=False, non_blocking=True)]).key == "pageable-readback"
    assert fix_for([copy_name("HtoD", pinned=True)]).key == "pinned-upload"
    assert fix_for([copy_name("DtoH", pinned=True)]).key == "readback"
    assert fix_for([copy_name("HtoD")]).key == "upload"


@pytest.mark.parametrize("fix", SYNC_FIXES, ids=lambda fix: fix.key)
def test_every_rewrite_runs(fix, monkeypatch):
    torch = pytest.importorskip("torch")
    streams = pytest.importorskip("gapless.runtime.streams")
    monkeypatch.setattr(gapless, "streams", streams, raising=False)
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    x, model = torch.randn(8, device=device), torch.nn.Linear(4, 4).to(device)
    loss = model(torch.randn(2, 4, device=device)).sum()
    loss.backward()
    names = {
        "torch": torch, "x": x, "y": torch.rand(8, device=device), "mask": x > 0, "loss": loss, "model": model,
        "i": torch.tensor([0, 1, 2, 1, 0, 0, 1, 3], device=device), "k": torch.tensor(2, device=device), "n": 8,
        "batch": torch.randn(4, 2), "table": torch.randn(8), "device": device, "step": 100,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
    }  # fmt: skip
    exec(compile(fix.rewrite, fix.key, "exec"), names)
