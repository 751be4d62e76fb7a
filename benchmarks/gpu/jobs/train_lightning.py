"""A Lightning `Trainer` on a small convolutional network. With a folder as argument: gapless' callback too."""

from __future__ import annotations

import sys

import lightning
import torch
from torch import nn

torch.manual_seed(0)
small = not torch.cuda.is_available()


class Net(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        wide = 8 if small else 64
        self.net = nn.Sequential(
            nn.Conv2d(3, wide, 3, padding=1), nn.ReLU(), nn.Conv2d(wide, wide, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(wide, 10),
        )  # fmt: skip

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], _: int) -> torch.Tensor:
        images, labels = batch
        return nn.functional.cross_entropy(self.net(images), labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters())


side, batch = (16, 4) if small else (64, 64)
images = torch.utils.data.TensorDataset(torch.randn(batch * 300, 3, side, side), torch.randint(0, 10, (batch * 300,)))
callbacks = []
if len(sys.argv) > 1:
    import gapless

    callbacks.append(gapless.lightning_callback(sys.argv[1]))
trainer = lightning.Trainer(
    max_epochs=1,
    callbacks=callbacks,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    accelerator="cpu" if small else "gpu",
    devices=1,
)
trainer.fit(Net(), torch.utils.data.DataLoader(images, batch_size=batch, pin_memory=not small))
print("trained", trainer.global_step)
