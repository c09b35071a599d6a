"""linear_sample: the generator, the reference against plain definitions, shards, refusals, and whether the draws follow the
distribution, with the power of that test."""

import itertools
import math

import pytest
import torch
from launched import check

from tilewright import ops
from tilewright.ops.linear_sample import reference

DRAWS, ENTRIES = 200_000, 16
Z_FALSE, Z_MISS = 5.0, 3.0  # a false alarm once in 3.5 million entries; a bias of the stated size missed once in 740


def example(rows=6, entries=50, features=8):
    torch.manual_seed(5)
    given = {"x": torch.randn(rows, features), "weight": torch.randn(entries, features)}
    return given | {"seed": torch.randint(1 << 62, (rows,))}


def logits(given):
    return given["x"] @ given["weight"].t()


def test_generator_gives_the_published_words():
    words = reference.philox(
        torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    )
    assert [int(w) for w in words] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_noise_is_gumbel_noise():
    noise = reference.gumbel(torch.arange(200), 0, 1000, 1, torch.float64)
    assert abs(float(noise.mean()) - 0.5772157) < 5 * math.pi / math.sqrt(6 * noise.numel())
    assert abs(float(noise.var()) - math.pi**2 / 6) < 0.03
    for level in (0.01, 0.5, 0.99, 0.9999):
        share = float((torch.exp(-torch.exp(-noise)) < level).double().mean())
        assert abs(share - level) < 5 * math.sqrt(level * (1 - level) / noise.numel())


def test_a_draw_is_the_argmax_of_logits_and_noise():
    given = example()
    token, logprob = ops.linear_sample(**given, temperature=0.7, samples=3)
    y = logits(given) / 0.7
    noise = reference.gumbel(given["seed"], 0, 50, 3, torch.float32)
    assert torch.equal(token, (y[:, None] + noise).argmax(-1))
    torch.testing.assert_close(logprob, torch.log_softmax(y, -1).gather(-1, token))


def test_temperature_zero_is_greedy():
    given = example()
    token, logprob = ops.linear_sample(**given, temperature=torch.tensor([0.0, 1, 0, 1, 0, 1]), samples=4)
    y = logits(given)
    assert torch.equal(token[::2], y[::2].argmax(-1, keepdim=True).expand(3, 4))
    torch.testing.assert_close(logprob, torch.log_softmax(y, -1).gather(-1, token))


@pytest.mark.parametrize("seed_of_test", range(3))
def test_filters_keep_what_their_definitions_say(seed_of_test):
    torch.manual_seed(seed_of_test)
    y = torch.randn(8, 40, dtype=torch.float64) * 2
    k, p, m = (
        torch.randint(0, 50, (8,)),
        torch.rand(8, dtype=torch.float64) * 1.2,
        torch.rand(8, dtype=torch.float64) * 0.2,
    )
    keep = reference.kept_of(y, k, p, m)
    for row in range(8):
        order = y[row].argsort(descending=True).tolist()
        left = order[: int(k[row])] if k[row] else order
        mass = torch.softmax(y[row, left], -1)
        count = next((i + 1 for i in range(len(left)) if mass[: i + 1].sum() >= p[row]), len(left))
        wanted = {e for e in left[:count] if torch.exp(y[row, e] - y[row, order[0]]) >= m[row]}
        assert set(keep[row].nonzero().flatten().tolist()) == wanted


def test_equal_logits_stay_together():
    y = torch.tensor([[3.0, 1.0, 1.0, 1.0, 0.0]])
    assert reference.kept_of(y, torch.tensor([2]), None, None).tolist() == [[True, True, True, True, False]]


def test_penalties():
    given = example(rows=1, entries=4)
    counts = torch.tensor([[0, 1, 2, 0]])
    option = dict.fromkeys(("repetition", "frequency", "presence"), None)
    y = logits(given)
    for name, value, wanted in (
        ("repetition", 2.0, torch.where(y > 0, y / 2, y * 2)),
        ("frequency", 0.5, y - 0.5 * counts),
        ("presence", 0.5, y - 0.5),
    ):
        _, logprob = ops.linear_sample(**given, counts=counts, **{**option, name: value}, samples=64)
        token = ops.linear_sample(**given, counts=counts, **{**option, name: value}, samples=64)[0]
        expected = torch.log_softmax(torch.where(counts > 0, wanted, y), -1)
        torch.testing.assert_close(logprob, expected.gather(-1, token))


def test_the_mask_is_kept_to_and_nothing_allowed_is_said():
    given = example(rows=2, entries=12)
    allowed = torch.zeros(2, 12, dtype=torch.bool)
    allowed[0, [3, 7]] = True
    token, logprob = ops.linear_sample(**given, allowed=allowed, samples=200)
    assert set(token[0].tolist()) == {3, 7}
    assert set(token[1].tolist()) == {-1}
    assert bool((logprob[1] == float("-inf")).all())


def test_a_row_draws_the_same_in_any_batch():
    given = example(rows=9)
    options = {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "samples": 2}
    whole = ops.linear_sample(**given, **options)[0]
    for row in range(9):
        alone = {n: given[n][row : row + 1] for n in ("x", "seed")} | {"weight": given["weight"]}
        assert torch.equal(ops.linear_sample(**alone, **options)[0], whole[row : row + 1])


def test_other_seeds_and_samples_are_other_draws():
    given = example(rows=1, entries=1000)
    token = ops.linear_sample(**given, temperature=5.0, samples=64)[0]
    assert token.unique().numel() > 40
    again = ops.linear_sample(**(given | {"seed": given["seed"] + 1}), temperature=5.0, samples=64)[0]
    assert (token == again).sum() < 8


@pytest.mark.parametrize("cuts", [(24,), (8, 44), (4, 8, 12)])
def test_shards_draw_what_the_whole_draws(cuts):
    given = example()
    options = {"temperature": 0.6, "samples": 3}
    edges = [0, *cuts, 50]
    parts = [ops.linear_sample_shard(given["x"], given["weight"][a:b], given["seed"], first=a, **options)
             for a, b in itertools.pairwise(edges)]  # fmt: skip
    token, logprob = ops.merge_samples(*(torch.stack(p) for p in zip(*parts, strict=True)))
    wanted = ops.linear_sample(**given, **options)
    assert torch.equal(token, wanted[0])
    torch.testing.assert_close(logprob, wanted[1])


def test_a_shard_without_anything_allowed_gives_way():
    given = example(rows=2, entries=16)
    allowed = torch.ones(2, 16, dtype=torch.bool)
    allowed[0, :8], allowed[1] = False, False
    parts = [ops.linear_sample_shard(given["x"], given["weight"][a : a + 8], given["seed"], first=a, samples=2,
                                     allowed=allowed[:, a : a + 8]) for a in (0, 8)]  # fmt: skip
    token, logprob = ops.merge_samples(*(torch.stack(p) for p in zip(*parts, strict=True)))
    wanted = ops.linear_sample(**given, allowed=allowed, samples=2)
    assert torch.equal(token, wanted[0])
    torch.testing.assert_close(logprob, wanted[1])


# --- the distribution -------------------------------------------------------------------------------------------------


def caught(p, draws=DRAWS):
    """The bias of an entry's probability that the test below catches all but once in 740 times: false alarms at ``Z_FALSE``
    deviations, misses at ``Z_MISS``."""
    return (Z_FALSE + Z_MISS) * math.sqrt(p * (1 - p) / draws)


def furthest(tokens, p):
    """By how many deviations the count of any entry is off."""
    share = torch.bincount(tokens, minlength=len(p)).double() / len(tokens)
    return float(((share - p).abs() / (p * (1 - p) / len(tokens)).sqrt()).max())


@pytest.mark.parametrize("options", [{"temperature": 1.3}, {"top_k": 9}, {"top_p": 0.8, "min_p": 0.02}])
def test_draws_follow_the_distribution(options):
    torch.manual_seed(1)
    y = torch.randn(1, ENTRIES, dtype=torch.float64)
    seeds = torch.arange(DRAWS // 4)
    given = {"x": torch.ones(len(seeds), 1, dtype=torch.float64), "weight": y.t(), "seed": seeds}
    token = ops.linear_sample(**given, **options, samples=4)[0]
    heated = y / options.get("temperature", 1.0)
    k, p, m = (torch.tensor([options[n]]) if n in options else None for n in ("top_k", "top_p", "min_p"))
    heated = torch.where(reference.kept_of(heated, k, p, m), heated, torch.full_like(heated, float("-inf")))
    wanted = torch.softmax(heated, -1)[0]
    kept = wanted > 0
    assert bool(kept[token].all())
    assert furthest(token.flatten(), wanted[kept.nonzero().flatten()]) < Z_FALSE if bool(kept.all()) else True
    inverse = kept.cumsum(0) - 1
    assert furthest(inverse[token].flatten(), wanted[kept]) < Z_FALSE


def test_the_power_is_what_is_stated():
    """Draws with a bias of the stated size in one entry are refused; for an even entry it is 0.0044 of probability."""
    p = torch.full((ENTRIES,), 1 / ENTRIES, dtype=torch.float64)
    bias = caught(1 / ENTRIES)
    assert 0.0042 < bias < 0.0045
    biased = p.clone()
    biased[3] += bias
    biased[5] -= bias
    torch.manual_seed(2)
    refused = [furthest(torch.multinomial(biased, DRAWS, replacement=True), p) >= Z_FALSE for _ in range(20)]
    kept = [furthest(torch.multinomial(p, DRAWS, replacement=True), p) < Z_FALSE for _ in range(20)]
    assert all(refused)
    assert all(kept)


@pytest.mark.parametrize(("change", "words"), [
    ({"weight": torch.zeros(8, 50)}, ["weight", "(8, 50)", "(vocabulary, 8)", "weight.t()"]),
    ({"weight": torch.zeros(50, 8).half()}, ["weight", "float16", "float32 as x"]),
    ({"seed": torch.zeros(6)}, ["seed", "float32", "int64"]),
    ({"seed": torch.zeros(5, dtype=torch.int64)}, ["seed", "(5,)", "(6,)"]),
    ({"temperature": torch.ones(6).double()}, ["temperature", "float64", "float32"]),
    ({"top_k": torch.ones(6)}, ["top_k", "float32", "int64"]),
    ({"repetition": 1.5}, ["counts", "None", "repetition"]),
    ({"allowed": torch.ones(6, 50)}, ["allowed", "float32", "bool"]),
    ({"counts": torch.ones(6, 49, dtype=torch.int64)}, ["counts", "(6, 49)", "(6, 50)"]),
    ({"samples": 0}, ["samples", "0", "1 to 1024"]),
])  # fmt: skip
def test_what_is_refused(change, words):
    with pytest.raises(ops.ArgumentError) as e:
        ops.linear_sample(**(example() | change))
    for word in ["linear_sample", "Try: ", *words]:
        assert word in str(e.value)


def test_a_shard_begins_at_a_group_of_four():
    with pytest.raises(ops.ArgumentError, match="multiple of 4"):
        ops.linear_sample_shard(**example(), first=6)


def test_launchers():
    check("linear_sample_shard")
