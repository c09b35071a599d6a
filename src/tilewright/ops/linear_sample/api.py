"""``tilewright.ops.linear_sample``, and its parts for a vocabulary that is spread over devices."""

from __future__ import annotations

import torch

from .op import LINEAR_SAMPLE, LINEAR_SAMPLE_SHARD

__all__ = ["linear_sample", "linear_sample_shard", "merge_samples"]

Option = float | torch.Tensor | None


def linear_sample(
    x: torch.Tensor, weight: torch.Tensor, seed: torch.Tensor, bias: torch.Tensor | None = None, *,
    temperature: Option = None, top_k: int | torch.Tensor | None = None, top_p: Option = None, min_p: Option = None,
    counts: torch.Tensor | None = None, repetition: Option = None, frequency: Option = None, presence: Option = None,
    allowed: torch.Tensor | None = None, samples: int = 1,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Indices (rows, samples) int64 drawn from ``softmax(x @ weight.T + bias)``, and their log-probabilities
    (float32), for ``x`` (rows, features), ``weight`` (vocabulary, features), int64 ``seed`` (rows). Logits are float32
    and in no memory.

    The draw depends on the row, its seed and the number of the sample alone: the same in any batch. Options are one
    number or a tensor of one a row (float32; ``top_k`` int64; a tensor spares a fill), applied in this order:
    ``counts`` (rows, vocabulary), integers: how often a row has seen an entry; of those seen, a positive logit is
    divided by ``repetition`` and another one multiplied by it, then ``frequency * count`` and ``presence`` are
    subtracted. ``temperature``: logits are divided by it; 0: the largest logit, and its log-probability at 1.
    ``allowed`` (rows, vocabulary), bool. ``top_k``: the k largest (0: all). ``top_p``: of those, the fewest largest
    whose probabilities reach it (1 or more: all). ``min_p``: those with at least this share of the largest
    probability. Each filter is a threshold: equals stay together. The log-probability is that under what was drawn
    from. Where nothing may be drawn: -1 and -inf. Raises ArgumentError."""
    each = [_each(x, o) for o in (temperature, top_p, min_p, repetition, frequency, presence)]
    temperature, top_p, min_p, repetition, frequency, presence = each
    if isinstance(top_k, int):
        top_k = torch.full(x.shape[:1], top_k, dtype=torch.int64, device=x.device)
    found: tuple[torch.Tensor, torch.Tensor] = LINEAR_SAMPLE(
        x,
        weight,
        seed,
        bias,
        temperature,
        top_k,
        top_p,
        min_p,
        counts,
        repetition,
        frequency,
        presence,
        allowed,
        samples,
    )
    return found


def linear_sample_shard(
    x: torch.Tensor, weight: torch.Tensor, seed: torch.Tensor, bias: torch.Tensor | None = None, *, first: int,
    temperature: Option = None, counts: torch.Tensor | None = None, repetition: Option = None, frequency: Option = None,
    presence: Option = None, allowed: torch.Tensor | None = None, samples: int = 1,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """What one shard of the vocabulary, its entries from ``first`` (a multiple of 4) on, contributes to
    ``linear_sample``: index in the whole vocabulary, log-probability within the shard and score (rows, samples), and
    the logarithm of the shard's sum of exponentials (rows). ``merge_samples`` joins shards. Filters need all logits
    and are not offered."""
    heat, *penalties = (_each(x, o) for o in (temperature, repetition, frequency, presence))
    found: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor] = LINEAR_SAMPLE_SHARD(
        x, weight, seed, bias, heat, None, None, None, counts, *penalties, allowed, samples, first
    )
    return found


def merge_samples(
    token: torch.Tensor, logprob: torch.Tensor, score: torch.Tensor, total: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Index and log-probability (rows, samples) of the whole vocabulary from what ``linear_sample_shard`` gave on each
    shard, stacked along a first dim in the order of the shards (as an all-gather stacks them): what ``linear_sample``
    gives on the whole, its log-probability up to rounding."""
    best = score.argmax(0, keepdim=True)
    found, ours = token.gather(0, best).squeeze(0), logprob.gather(0, best).squeeze(0)
    theirs = total[..., None].expand(logprob.shape).gather(0, best).squeeze(0)
    top = total.amax(0)
    whole = top + torch.log(torch.exp(total - torch.where(top == float("-inf"), torch.zeros_like(top), top)).sum(0))
    return found, torch.where(found < 0, ours, ours + (theirs - whole[..., None]))


def _each(x: torch.Tensor, option: Option) -> torch.Tensor | None:
    """One number for each row."""
    if option is None or isinstance(option, torch.Tensor):
        return option
    return torch.full(x.shape[:1], option, dtype=torch.float32, device=x.device)
