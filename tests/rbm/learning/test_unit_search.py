"""The search for a unit: objectives, gradients and gains against enumeration."""

from types import SimpleNamespace

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rbm_models import (
    KINDS,
    all_rows,
    make_unit,
    objective_of,
    random_states,
    search_samples,
)

from skbayesnn.rbm.learning import unit_search as fw


@pytest.mark.parametrize("shift", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("with_offsets", [False, True])
@pytest.mark.parametrize("unit_weight", [1.0, 0.4, 2.5])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_objective_of_a_unit(scale, kind, unit_weight, with_offsets, shift):
    samples, exact, offsets = search_samples(kind, with_offsets, scale=scale)
    objective = objective_of(kind, unit_weight)
    w = np.float32(np.random.default_rng(1).normal(0.0, 2.0, 5)).astype(float)

    def reference(z):
        return naive.unit_objective(kind, *exact, z, unit_weight, 0.1, *offsets)

    value, slope, shift_slope = fw.value_and_gradient(objective, samples, w, shift)
    z = np.append(w, shift)
    assert_allclose(value, reference(z), rtol=1e-5, atol=1e-6)
    expected = naive.finite_differences(reference, z)
    assert_allclose(slope, expected[:-1], rtol=1e-4, atol=1e-5)
    if kind == "linearized":
        # biases follow the chains, not the linearised objective
        assert shift_slope == 0.0
    else:
        assert_allclose(shift_slope, expected[-1], rtol=1e-4, atol=1e-5)

    unit = make_unit(w[:-1], w[-1], shift)
    gain, penalty = fw.gain(objective, samples, unit), fw.penalty(objective, unit)
    assert_allclose(penalty, 0.5 * unit_weight * 0.1 * w @ w, rtol=1e-6)
    assert_allclose(gain.value - penalty, value, rtol=1e-5, atol=1e-6)
    x = all_rows(samples.model) @ w[:-1] + w[-1]
    offset = 0.0 if samples.model_offset is None else samples.model_offset
    ratio = np.exp(unit_weight * (naive.softplus(x) - shift * x) + offset)
    size = naive.effective_sample_size(ratio)
    assert_allclose(gain.effective_sample_size, size, rtol=1e-4)


@pytest.mark.parametrize("radius", [0.5, 3.0, None])
def test_gradients_through_the_ball(radius):
    matrix = np.random.default_rng(0).normal(size=(5, 5))
    for scale in [0.0, 0.1, 1.0, 20.0]:
        z = scale * np.array([0.3, -1.0, 2.0, 0.5, 0.1])
        w, pull_back = fw._into_ball(z, radius)
        assert radius is None or np.linalg.norm(w) < radius

        def mapped(z):
            w = fw._into_ball(z, radius)[0]
            return np.sin(w) @ matrix @ w

        slope = np.cos(w) * (matrix @ w) + np.sin(w) @ matrix
        expected = naive.finite_differences(mapped, z)
        assert_allclose(pull_back(slope), expected, rtol=1e-6, atol=1e-8)
    # the whole ball is reached
    if radius is not None:
        direction = np.ones(5) / np.sqrt(5.0)
        assert_allclose(fw._into_ball(1e6 * direction, radius)[0], radius * direction)


@pytest.mark.parametrize("radius", [None, 1.5])
@pytest.mark.parametrize("kind", KINDS)
def test_search_ends_at_a_maximum(kind, radius):
    samples, exact, offsets = search_samples(kind, False, 1)
    objective = objective_of(kind, 0.7, radius=radius)
    rng = np.random.default_rng(0)
    start = fw.choose_start(objective, samples, rng)
    again = fw.choose_start(objective, samples, np.random.default_rng(0))
    assert_array_equal(start, again)
    inside = fw._into_ball(start[:-1], radius)[0]
    at_start, _, _ = fw.value_and_gradient(objective, samples, inside, start[-1])
    unit = fw.search(objective, samples, start, 200, 1e-12)
    z = np.append(unit.weights, [unit.bias, unit.shift]).astype(float)
    assert unit.weights.dtype == np.float32 and unit.n_evaluations > 1
    assert radius is None or np.linalg.norm(z[:-1]) <= radius * (1 + 1e-6)
    assert 0.0 <= unit.shift <= 1.0
    assert kind == "likelihood" or unit.shift == 0.0

    def reference(z):
        return naive.unit_objective(kind, *exact, z, 0.7, 0.1, *offsets)

    assert_allclose(unit.value, reference(z), atol=1e-5)
    assert unit.value > at_start
    for _ in range(100):
        near = z + rng.normal(0.0, 0.05, 6)
        if radius is not None:
            near[:-1] *= min(1.0, radius / np.linalg.norm(near[:-1]))
        near[-1] = np.clip(near[-1], 0.0, 1.0) if kind == "likelihood" else 0.0
        assert reference(near) < unit.value + 1e-5


def wide_samples(n, seed):
    """Rows that a unit tells from draws of independent features, through noise."""
    rng = np.random.default_rng((n, seed))
    data = np.repeat(rng.integers(0, 2, (n, 2)), 20, axis=1)
    data ^= rng.random(data.shape) < 0.3
    return fw.Samples(
        *(fw.pack(V.astype(np.uint8)) for V in (data, rng.random(data.shape) < 0.5))
    )


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 5))]
)
def test_a_search_ends_where_other_samples_gain_most(seed):
    """In many dimensions, its last iterates have learned its samples by heart."""
    searched, checked = wide_samples(40, seed), wide_samples(4000, seed)
    objective = objective_of("likelihood", unit_penalty=1e-3)
    start = fw.choose_start(objective, searched, np.random.default_rng(seed))

    def on_others(unit):
        return fw.gain(objective, checked, unit).value

    found = fw.search(objective, searched, start, 30, 0.0, checked)
    # a search that is broken off goes the same way
    units = [fw.search(objective, searched, start, n, 0.0) for n in range(1, 31)]
    gains = [on_others(unit) for unit in units]
    assert on_others(found) > gains[-1] + 0.01
    assert on_others(found) == pytest.approx(max(gains), abs=0.1)
    (number,) = (
        n
        for n, unit in enumerate(units)
        if np.array_equal(unit.weights, found.weights) and unit.bias == found.bias
    )
    assert gains[number] == on_others(found)
    # its value is that on the samples of the search, which goes on rising
    assert found.value == pytest.approx(units[number].value, rel=1e-6)
    assert found.value < units[-1].value


def test_a_search_without_a_step_has_its_start():
    samples = wide_samples(40, 0)
    objective = objective_of("likelihood")
    start = fw.choose_start(objective, samples, np.random.default_rng(0))
    # no change is large enough
    found = fw.search(objective, samples, start, 30, 1e9, samples)
    assert np.isfinite(found.value) and found.weights.any()


@pytest.mark.parametrize("unit_weight", [0.3, 1.0, 2.0])
def test_the_exact_gain_never_exceeds_the_linearized_one(unit_weight):
    rng = np.random.default_rng(0)
    for seed in range(20):
        V = random_states(9, 5, seed), random_states(30, 5, seed + 99)
        samples = fw.Samples(*(fw.pack(one) for one in V))
        unit = make_unit(rng.normal(0.0, 2.0, 5), rng.normal())
        exact, linear = (
            fw.gain(objective_of(kind, unit_weight), samples, unit).value
            for kind in ("likelihood", "linearized")
        )
        assert exact < linear
        # a unit without weights gains nothing
        for kind in KINDS:
            none = unit._replace(weights=0.0 * unit.weights)
            gain = fw.gain(objective_of(kind), samples, none)
            # softplus is float32, and its last bit depends on the length of the rows
            assert_allclose(gain.value, 0.0, atol=2e-7)
            assert_allclose(gain.effective_sample_size, 30.0)


def test_rows_are_packed_where_they_are_binary(monkeypatch):
    monkeypatch.setattr(fw, "BLOCK_ROWS", 4)
    V = random_states(11, 9)
    index = np.array([0, 2, 3, 4, 5, 8, 9, 10])
    w, s = np.random.default_rng(0).normal(size=(2, 9)).astype(np.float32)
    s = s[: len(index)]
    soft = V.astype(np.float32)
    # in the second block alone
    soft[9, 3] = 0.5
    kinds = {np.uint8: fw.PackedRows, np.float32: fw.PackedRows, None: fw.DenseRows}
    for dtype, kind in kinds.items():
        values = soft if dtype is None else V.astype(dtype)
        dense = np.float32(values[index])
        source = SimpleNamespace(states=values.__getitem__)
        for rows in (fw.gather(source, index), fw.pack(values[index])):
            assert isinstance(rows, kind) and len(rows) == 8
            assert_array_equal(all_rows(rows), dense)
            assert_array_equal(rows.take([5, 0]), dense[[5, 0]])
            assert_allclose(rows.inputs(w, 0.5), dense @ w + 0.5, atol=1e-5)
            assert_allclose(rows.weighted_sum(s), s @ dense, atol=1e-5)
            assert rows.weighted_sum(s).dtype == np.float64
            for n, kept in [(8, slice(None)), (4, slice(0, 8, 2)), (3, slice(0, 8, 3))]:
                assert_array_equal(all_rows(rows.thin(n)), dense[kept])
            assert len(rows.thin(1000)) == 8 and len(rows.thin(1)) == 1
