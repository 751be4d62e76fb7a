"""Data-parallel training by gloo, several ranks on one device; for torchrun."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
device = "cuda:0" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(512, 512), nn.GELU())]).to(device)
model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(64, 512, device=device)
for _ in range(60):
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
print("rank done")
