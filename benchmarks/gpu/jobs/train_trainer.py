"""A transformers `Trainer` on a small GPT-2 with random weights. With a folder as argument: gapless' callback too."""

from __future__ import annotations

import os
import sys
import tempfile
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

os.environ.setdefault("HF_HUB_OFFLINE", "1")
small = not torch.cuda.is_available()
torch.manual_seed(0)


class Tokens(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(i)
        ids = torch.randint(0, 8192, (32 if small else 512,), generator=generator)
        return {"input_ids": ids, "labels": ids}


TIMES: list[float] = []


class Clock(TrainerCallback):
    def on_step_end(self, *_args: object, **_kwargs: object) -> None:
        TIMES.append(time.perf_counter())


width, layers = (32, 2) if small else (512, 8)
model = GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=width, n_head=4, vocab_size=8192))
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    max_steps=80 if small else 250,
    per_device_train_batch_size=2 if small else 16,
    logging_steps=10,
    save_strategy="no",
    report_to=[],
    bf16=not small,
    disable_tqdm=True,
)
callbacks: list[TrainerCallback] = [Clock()]
if len(sys.argv) > 1:
    from gapless.runtime.recorder.integrations import trainer_callback

    callbacks.append(trainer_callback(sys.argv[1]))
Trainer(model=model, args=arguments, train_dataset=Tokens(), callbacks=callbacks).train()
late = TIMES[-41:]
print(f"ms per step {(late[-1] - late[0]) / 40 * 1e3:.3f}")
