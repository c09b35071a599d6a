"""Tensors come back bit for bit, with layout and alignment."""

import random

import pytest
import torch

from tilewright.errors import LedgerError, Unsupported
from tilewright.ledger import tensors
from tilewright.task.tensors import DTYPES


class Memory(dict):
    """Blobs in a dict."""

    def put(self, data: bytes) -> str:
        import hashlib

        self[sha := hashlib.sha256(data).hexdigest()] = data
        return sha


@pytest.fixture
def blobs():
    return Memory()


def bits(t: torch.Tensor) -> bytes:
    return t.detach().resolve_conj().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b""


def any_bits(dtype: str, *shape: int, seed: int = 0) -> torch.Tensor:
    """A tensor of random bits: for floats, NaN payloads and subnormals among them."""
    kind = getattr(torch, dtype)
    count = torch.Size(shape).numel()
    raw = bytearray(random.Random(seed).randbytes(count * kind.itemsize))
    if dtype == "bool":
        raw = bytearray(b & 1 for b in raw)
    if dtype == "float32":
        raw[:8] = bytes.fromhex("010080ff") + bytes.fromhex("efbead7f")  # a signalling NaN, a NaN with a payload
    return torch.frombuffer(raw, dtype=torch.uint8).clone().view(kind).reshape(shape)


def same(a: torch.Tensor, b: torch.Tensor) -> None:
    assert (a.dtype, a.shape, a.stride(), a.requires_grad) == (b.dtype, b.shape, b.stride(), b.requires_grad)
    assert bits(a) == bits(b)


@pytest.mark.parametrize("dtype", [*DTYPES, "uint16", "uint32", "uint64", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_every_dtype_bit_for_bit(blobs, dtype):
    t = any_bits(dtype, 3, 4)
    record = tensors.save(t, blobs.put)
    assert record.dtype == dtype
    assert (record.shape, record.strides, record.storage_bytes) == ((3, 4), (4, 1), 12 * t.element_size())
    same(tensors.load(record, blobs.get), t)


BASE = any_bits("bfloat16", 6, 8)
VIEWS = {
    "transposed": BASE.t(),
    "sliced": BASE[1:5:2, 1:7:3],
    "offset": BASE.reshape(-1)[5:],
    "expanded": BASE[:, :1].expand(6, 1000),
    "expanded to a terabyte": BASE[:1, :1].expand(1 << 20, 1 << 20),
    "zero-dimensional": BASE[2, 3],
    "empty": BASE[:0],
    "empty in the middle": torch.empty(3, 0, 5),
    "overlapping": BASE.reshape(-1).as_strided((5, 4), (1, 2), 3),
    "gap": torch.zeros(100, 100)[::50, ::99],
    "size one with odd stride": BASE.reshape(-1).as_strided((1, 3), (77, 1)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_layouts(blobs, name):
    t = VIEWS[name]
    record = tensors.save(t, blobs.put)
    back = tensors.load(record, blobs.get)
    assert (back.shape, back.stride(), back.dtype) == (t.shape, t.stride(), t.dtype)
    if t.numel() < 1 << 20:
        same(back, t)
    assert back.data_ptr() % 64 == t.storage_offset() * t.element_size() % 64 or t.numel() == 0


def test_only_the_spanned_part_is_kept(blobs):
    base = torch.arange(1 << 20, dtype=torch.float32)
    record = tensors.save(base[1 << 19 :][3:7], blobs.put)
    assert len(blobs[record.blob]) == 16
    assert record.offset == 3
    tensors.save(BASE[:1, :1].expand(1 << 20, 1 << 20), blobs.put)
    assert max(map(len, blobs.values())) == 16


def test_conjugate_and_gradient(blobs):
    t = any_bits("complex64", 4).nan_to_num()
    same(tensors.load(tensors.save(t.conj(), blobs.put), blobs.get), t.conj().resolve_conj())
    leaf = torch.ones(3, requires_grad=True)
    back = tensors.load(tensors.save(leaf, blobs.put), blobs.get)
    assert back.requires_grad
    assert back.is_leaf


def test_writing_to_a_loaded_tensor_changes_nothing_kept(blobs):
    record = tensors.save(torch.zeros(4), blobs.put)
    tensors.load(record, blobs.get).fill_(9)
    assert tensors.load(record, blobs.get).eq(0).all()


def test_too_large_is_not_kept_and_says_so(blobs):
    record = tensors.save(torch.zeros(1000, dtype=torch.float64), blobs.put, limit=4096)
    assert record.blob == ""
    assert record.preview == "values not kept: 0.0 MiB is over the 0.00390625 MiB left for this case"
    assert not blobs
    with pytest.raises(LedgerError) as e:
        tensors.load(record, blobs.get)
    assert "the values of this float64 tensor (1000,) were not kept" in str(e.value)
    assert "Try: draw them again by the recipe of the case" in str(e.value)


def test_a_case_has_one_budget_and_keeps_the_small_ones(blobs):
    case = {"big": torch.ones(900), "small": torch.ones(10), "middle": torch.ones(500)}
    records = tensors.save_case(case, blobs.put, limit=4 * 600)
    assert list(records) == ["big", "small", "middle"]
    assert [bool(r.blob) for r in records.values()] == [False, True, True]


def test_a_wrong_blob_is_noticed(blobs):
    record = tensors.save(torch.zeros(4), blobs.put)
    with pytest.raises(LedgerError, match="has 3 bytes, its layout needs 16"):
        tensors.load(record, lambda sha: b"abc")


@pytest.mark.parametrize("t", [torch.zeros(3).to_sparse(), torch.zeros(3, device="meta")])
def test_what_is_no_plain_memory_is_unsupported(blobs, t):
    with pytest.raises(Unsupported, match="can't be kept in the ledger"):
        tensors.save(t, blobs.put)


def test_previews():
    assert (
        tensors.preview(torch.tensor([1.5, float("nan"), 0.0, 1 / 3, 2.0, 3.0, 4.0]))
        == "[1.5, nan, 0, 0.333333, 2, 3, …]"
    )
    assert tensors.preview(torch.tensor(True)) == "[True]"
    assert tensors.preview(torch.empty(0, 2)) == "[]"
    assert tensors.preview(torch.tensor([[1, 2], [3, 4]])[:, 1]) == "[2, 4]"


def test_through_the_ledger(ledger):
    t = any_bits("float8_e4m3fn", 5, 7).t()
    same(ledger.load_tensor(ledger.save_tensor(t)), t)
