"""Which speed-ups do fixes bring in real transformers models? Pairs with measured times, random weights.

Usage: python models.py OUT [CASE ...]. Needs transformers and a CUDA GPU. Writes as `gpu_work` does.
"""

from __future__ import annotations

import tempfile

import gpu_work
import host_work
import torch
from gpu_work import BF, Step, case
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

gpu_work.CASES.clear()
D = "cuda"


def llama(layers: int = 2, width: int = 512) -> LlamaForCausalLM:
    config = LlamaConfig(
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=8,
        vocab_size=8192,
        pad_token_id=0,
        eos_token_id=None,
    )
    return LlamaForCausalLM(config).to(D, BF).eval()


@case("decode_compiled", "a decode step of Llama, eager vs torch.compile(mode='reduce-overhead')", "launch-bound")
def _(fixed: bool) -> Step:
    torch.manual_seed(0)
    model, ids = llama(), torch.randint(1, 8192, (1, 1), device=D)
    forward = torch.compile(model, mode="reduce-overhead") if fixed else model

    def step() -> None:
        with torch.no_grad():
            forward(input_ids=ids, use_cache=False)

    return step


class Sentences(torch.utils.data.Dataset):
    """Sentences that are tokenised letter by letter when asked for, as hand-written tokenisers do."""

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, i: int) -> dict[str, list[int]]:
        ids = [(i * 31 + 7 * k * k) % 8192 for k in range(512)]
        return {"input_ids": ids, "labels": ids}


def trainer(workers: int) -> Trainer:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=512, n_head=8, vocab_size=8192))
    more = {"dataloader_prefetch_factor": 4, "dataloader_persistent_workers": True} if workers else {}
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=16,
        report_to=[],
        save_strategy="no",
        bf16=True,
        max_steps=1000,
        dataloader_num_workers=workers,
        **more,
    )
    return Trainer(model=model, args=arguments, train_dataset=Sentences())


def train_step(made: Trainer, *, read_loss: bool = False) -> Step:
    model = made.model.to(D)
    made.create_optimizer()
    made.current_gradient_accumulation_steps = 1  # what train() sets before its first step
    batches = iter(made.get_train_dataloader())

    def step() -> object:
        loss = made.training_step(model, {k: v.to(D, non_blocking=True) for k, v in next(batches).items()})
        made.optimizer.step()
        model.zero_grad()
        return loss.item() if read_loss else loss

    return step


@case("trainer_loader", "Trainer without loader workers vs dataloader_num_workers=8", "input-bound")
def _(fixed: bool) -> Step:
    return train_step(trainer(8 if fixed else 0))


@case(
    "trainer_loss_item",
    "trap: a Trainer step whose loss is read each time gains next to nothing where the GPU is busy",
)
def _(fixed: bool) -> Step:
    return train_step(trainer(8), read_loss=not fixed)


if __name__ == "__main__":
    host_work.main()
