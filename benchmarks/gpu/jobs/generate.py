"""`generate()` of a small Llama with random weights, twelve prompts one after another."""

from __future__ import annotations

import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

small = not torch.cuda.is_available()
torch.manual_seed(0)
width, layers = (32, 2) if small else (1024, 12)
config = LlamaConfig(
    hidden_size=width,
    intermediate_size=4 * width,
    num_hidden_layers=layers,
    num_attention_heads=8 if not small else 4,
    vocab_size=8192,
    pad_token_id=0,
)
device = "cpu" if small else "cuda"
model = LlamaForCausalLM(config).to(device, torch.float32 if small else torch.bfloat16).eval()
model.generation_config.eos_token_id = None
tokens = 16 if small else 48
for _ in range(12):
    prompt = torch.randint(1, 8192, (1, 16), device=device)
    start = time.perf_counter()
    output = model.generate(prompt, max_new_tokens=tokens, do_sample=False)
    output.cpu()
    took = time.perf_counter() - start
print(f"ms per token {took / tokens * 1e3:.3f}")
