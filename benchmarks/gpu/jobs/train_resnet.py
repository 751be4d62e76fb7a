"""Training of a torchvision ResNet-50 on synthetic images, with the losses logged as many scripts do."""

from __future__ import annotations

import argparse
import time

import torch
import torchvision
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--steps", type=int, default=150)
arguments = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torchvision.models.resnet50().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
images = torch.utils.data.TensorDataset(torch.randn(512, 3, 224, 224), torch.randint(0, 1000, (512,)))
loader = torch.utils.data.DataLoader(images, batch_size=arguments.batch, shuffle=True)
done, running, times = 0, 0.0, []
while done < arguments.steps:
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        times.append(time.perf_counter())
        done += 1
late = times[-41:]
print(f"ms per step {(late[-1] - late[0]) / (len(late) - 1) * 1e3:.3f}")
