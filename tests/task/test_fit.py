import pytest

from tilewright.task.readers.fit import fit
from tilewright.task.tensors import evaluate


@pytest.mark.parametrize(
    ("truth", "symbols"),
    [("N", "N"), ("2*N", "N"), ("N-2", "N"), ("3*N+1", "N"), ("N//4", "N"), ("(N-1)//2+1", "N"), ("N*N", "N"),
     ("M*N", "MN"), ("2*M*N", "MN"), ("M+N", "MN"), ("2*M+N-3", "MN"), ("M-N+1", "MN"), ("-N+200", "N")],
)  # fmt: skip
def test_a_form_that_holds_is_found(truth, symbols):
    base = dict(zip("MN", (64, 32), strict=True))
    base = {s: base[s] for s in symbols}
    points = (
        [base]
        + [{**base, s: base[s] + d} for s in symbols for d in (1, base[s])]
        + [{s: v + 3 for s, v in base.items()}]
    )
    found = fit([(p, evaluate(truth, p)) for p in points], list(symbols))
    assert found is not None
    for n in (5, 17, 40, 100):
        point = {"M": n + 3, "N": n}
        assert evaluate(found, point) == evaluate(truth, point), found


def test_none_where_no_form_holds_and_the_size_where_nothing_moves_it():
    assert fit([({"N": n}, n % 7) for n in (64, 65, 128, 70)], ["N"]) is None
    assert fit([({"N": 3}, 8), ({"N": 4}, 8)], []) == 8
    assert fit([({"N": 3}, 8), ({"N": 4}, 9)], []) is None
