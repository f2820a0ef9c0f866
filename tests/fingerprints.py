"""Fingerprints of fitted models: proof that a change of the code changes no result.

``python tests/fingerprints.py > before.json`` fits small models of every kind on
simulated and embedded data. It writes a hash of each weight, prediction, draw and
likelihood, and a few numbers beside it. ``python tests/fingerprints.py --compare
before.json`` fits them again, lists what is no longer the same bit for bit, and how far
it has moved. It ends with 1 if something is missing, of another shape or type, or off
by more than ``--tolerance`` (relative to its root mean square; 0 asks for equal bits).

Hashes hold for one machine and one set of libraries, which the file names. Names in the
file are those of attributes, of dictionary keys, and of the results below. After a
renaming, change parameters and methods where they are used here, and enter the new name
of an attribute or key in ``RENAMED``; names of results and models stay.
"""

import argparse
import hashlib
import json
import sys
import warnings
from importlib.metadata import version

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_info, threadpool_limits

import skbayesnn
from skbayesnn import ContrastiveDivergenceRBM as CD
from skbayesnn import FrankWolfeRBM as FW
from skbayesnn import SparseBayesMLPRegressor as MLP
from skbayesnn import SparseBayesNARXRegressor as NARX
from skbayesnn import SparseBayesNARXRegressorCV as NARXCV
from skbayesnn.datasets import make_cascaded_tanks
from skbayesnn.metrics import crps_gaussian, residual_analysis

# New name of an attribute or a dictionary key: its name in the file.
RENAMED = {"n_active_units": "n_active_neurons"}
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite")


def attributes(model):
    """All that is fitted, properties as well."""
    names = sorted({*dir(model), *dir(type(model))})
    names = [n for n in names if n.endswith("_") and not n.startswith("_")]
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def mlp_results(model, X):
    return attributes(model) | {
        "prediction": model.predict(X, return_std=True),
        "draws": model.sample_y(X, n_samples=3),
        "sklearn": model.to_mlp_regressor().predict(X),
    }


def narx_results(model, U, Y, sessions=None):
    """All modes of prediction; no value is missing in the first 40 rows."""
    results, inputs = attributes(model), np.empty((len(Y), 0)) if U is None else U
    modes = {"free": (0, {"y_init": Y[: model.max_lag_]})}
    modes["from_one_row"] = 0, {"y_init": Y[:1]}
    modes["from_means"] = 0, {"sessions": sessions}
    modes["behind"] = 10, {"y_init": Y[:10], "X_init": inputs[:10]}
    for horizon in (1, 3, None):
        record = {"y": Y, "sessions": sessions, "horizon": horizon}
        modes[f"ahead_{horizon}"] = 0, record
        results[f"score_{horizon}"] = model.score(inputs, **record)
    for name, (first, arguments) in modes.items():
        results[name] = model.predict(inputs[first:], **arguments, return_std=True)
        results[f"{name}_draws"] = model.sample_y(inputs[first:], **arguments)
    head, state = model.predict(inputs[:40], **modes["free"][1], return_state=True)
    tail = model.predict(inputs[40:], state=state, return_state=True)
    stream, steps = model.stream(inputs[:10], Y[:10]), []
    for t in range(10, 30):
        steps.append(stream.step(inputs[t]))
        if t % 3 == 0:
            stream.update(Y[t])
    mean, std = results["ahead_1"]
    return results | {
        "in_two_parts": [head, state, tail],
        "stream": [np.array(steps), stream.run(inputs[30:60]), stream.state],
        "crps": crps_gaussian(Y, mean, std),
        "residuals": residual_analysis(Y - mean, U, max_lag=5, sessions=sessions),
    }


def rbm_results(model, X):
    hidden, holes = model.transform(X), np.where(np.arange(X.shape[1]) % 3, X, np.nan)
    chains = {"betas": 60, "n_chains": 60, "random_state": 1}
    return attributes(model) | {
        "hidden": hidden,
        "visible": model.inverse_transform(hidden),
        "free_energy": model.free_energy(X),
        "pseudo_likelihood": model.pseudo_likelihood(X),
        "log_likelihood": model.score_samples(X),
        "log_likelihood_truncated": model.truncate(1).score_samples(X),
        "ais": model.log_partition("ais", **chains),
        "reverse_ais": model.log_partition("reverse_ais", **chains),
        "exact": model.log_partition("exact"),
        "gibbs": model.gibbs(X, 5, random_state=2),
        "sample": model.sample(50, n_steps=30, random_state=3),
        "clamped": model.sample(20, n_steps=30, clamp=holes[0], random_state=4),
        "imputed": model.impute(holes.copy(), n_steps=30),
        "imputed_draw": model.impute(
            holes.copy(), strategy="sample", n_steps=30, random_state=0
        ),
    }


def points():
    """Two outputs of four inputs, of which one has no influence and one is constant."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (150, 4)) * [1.0, 1.0, 1.0, 0.0]
    Y = np.column_stack([np.sin(2.0 * X[:, 0]) + X[:, 1], X[:, 0] * X[:, 1]])
    return X, Y + 0.05 * rng.standard_normal(Y.shape)


def record(name):
    """Inputs, outputs and sessions to fit, and those to predict."""
    tanks = make_cascaded_tanks(250, random_state=0)
    U, Y, test = tanks.data, tanks.target, tanks.tests.test
    if name == "autoregression":
        return None, Y, None, None, test.target[:99], None
    if name == "gaps":
        U[170], Y[[40, 41, 120, 200]] = np.nan, np.nan
        return 2 * (U, Y, np.repeat([0, 1, 2], [80, 90, 80]))
    if name == "coupled":
        rng = np.random.default_rng(1)
        U, Y = rng.standard_normal((200, 2)), 0.05 * rng.standard_normal((200, 2))
        for t in range(2, 200):
            Y[t] += np.tanh(0.8 * Y[t - 1, ::-1] + 0.5 * U[t - 1]) - 0.3 * Y[t - 2]
        return U, Y, None, U[:99], Y[:99], None
    return U, Y, None, test.data[:99], test.target[:99], None


def digits(small=False):
    """64 pixels from 0 to 1, or the 16 in the middle: states that can be enumerated."""
    images = load_digits().images[:500] / 16.0
    return (images[:, 2:6, 2:6] if small else images).reshape(500, -1)


def mlp(outputs, *sizes, first=150, **options):
    """Of some outputs; with ``warm_start`` after a fit to the first rows."""
    X, Y = points()
    model = MLP(*sizes, **options, random_state=0)
    for n_rows in dict.fromkeys((first, 150)):
        model.fit(X[:n_rows], Y[:n_rows, outputs])
    return mlp_results(model, X[:60])


def narx(*lags, data="tanks", kind=NARX, **options):
    U, Y, sessions, *to_predict = record(data)
    model = kind(*lags, **options, random_state=0).fit(U, Y, sessions=sessions)
    return narx_results(model, *to_predict)


def rbm(model, X, n_parts=0, **data):
    model.set_params(random_state=0)
    for part in np.array_split(X, n_parts) if n_parts else ():
        model.partial_fit(sparse.csr_matrix(part))
    return rbm_results(model if n_parts else model.fit(X, **data), X[:150] > 0.5)


FREE = {"focus": "simulation"}
SHORT = {"hidden_layer_sizes": 4, "max_cycles": 15}
DIAG = {"curvature": "diag", "max_cycles": 15}
LBFGS = {"solver": "lbfgs", **DIAG}
ADAM = {"solver": "adam", "activation": "relu", "normalize": False, **DIAG}
ESTIMATED = {"initial_conditions": "estimated", "horizon_schedule": [1, 10, None]}
STARTS = {"n_restarts": 4, "n_estimators": 3, **SHORT}
VALIDATION = {"selection": "validation", "weighting": "validation", **STARTS}
BARE = {"skip_connection": False, "include_current_input": False, **SHORT}
GRID = {"lags": (2, 4), "reg_lambdas": (2.0, 20.0), "cv": 2, "n_estimators": 3, **SHORT}
CD_2 = {"n_gibbs_steps": 2, "persistent": False, "momentum": 0.5, "weight_decay": 1e-3}
REAL = {"binarize": None, "schedule": "inverse", "centered": False, "averaging": 0.0}
LINEAR = {"objective": "linearized", "n_chains": 200}
TUNED = {"fine_tune": CD(max_iter=5), "fine_tune_norm": 0.5, "units_per_step": 4}
STOPPED = {"radius": 5.0, "early_stopping": True, "max_gap": 1.0, **LINEAR}
# of few rows: it has no more units than those
FEW_UPDATES = {"fine_tune": CD(max_updates=100), "validation_fraction": 0.8}
FRACTIONAL = {"init": FW(5, alpha=0.5, n_chains=200, random_state=0), "max_iter": 5}
MODELS = {
    "data": lambda: dict(tanks=make_cascaded_tanks(99, random_state=0).target),
    "mlp": lambda: mlp(0),
    "mlp_lbfgs": lambda: mlp([0, 1], (6, 4), activation="logistic", **LBFGS),
    "mlp_adam": lambda: mlp(0, 8, groups="element", **ADAM),
    "mlp_warm_start": lambda: mlp([0, 1], first=99, max_cycles=9, warm_start=True),
    "narx": narx,
    "narx_simulation": lambda: narx(**FREE),
    "narx_estimated": lambda: narx([1, 3], 3, **FREE, **ESTIMATED, **SHORT),
    "narx_committee": lambda: narx(n_estimators=3),
    "narx_evidence": lambda: narx(weighting="evidence", **FREE, **STARTS),
    "narx_validation": lambda: narx(**VALIDATION),
    "narx_gaps": lambda: narx(data="gaps"),
    "narx_gaps_simulation": lambda: narx(data="gaps", **FREE, **SHORT),
    "narx_coupled": lambda: narx(data="coupled", **BARE),
    "narx_coupled_lbfgs": lambda: narx(data="coupled", **FREE, **LBFGS),
    "narx_autoregression": lambda: narx(data="autoregression", output_lags=3),
    "narx_cv": lambda: narx(kind=NARXCV, **GRID),
    "cd": lambda: rbm(CD(16, max_iter=9), digits() > 0.5, X_val=digits()[:99]),
    "cd_real": lambda: rbm(CD(12, max_iter=9, **CD_2, **REAL), digits()),
    "cd_fractional": lambda: rbm(CD(**FRACTIONAL), digits(True).astype("f4")),
    "cd_auto": lambda: rbm(CD(20, max_updates=200), digits() > 0.5),
    "cd_parts": lambda: rbm(CD(10, batch_size=50), digits() > 0.5, n_parts=5),
    "fw_auto": lambda: rbm(FW(**FEW_UPDATES), digits()[:120] > 0.5),
    "fw": lambda: rbm(FW(6), digits() > 0.5),
    "fw_learn": lambda: rbm(FW(5, alpha="learn"), digits(True)),
    "fw_tuned": lambda: rbm(FW(10, **TUNED), digits() > 0.5),
    "fw_stopped": lambda: rbm(FW(12, **STOPPED), digits()[:200], X_val=digits()[200:]),
    "fw_away": lambda: rbm(FW(5, away_steps=True, **LINEAR), digits(True)),
    "fw_parts": lambda: rbm(FW(5, n_chains=200), digits() > 0.5, n_parts=5),
}


def flat(name, value):
    """Names and arrays of a value that may be nested, without durations."""
    if hasattr(value, "get_params"):
        value = attributes(value)
    if isinstance(value, list | tuple):
        value = dict(enumerate(value))
    if not isinstance(value, dict):
        yield name, np.array(value, order="C")
        return
    for key, part in value.items():
        if key != "seconds":
            yield from flat(f"{name}.{RENAMED.get(key, key)}".lstrip("."), part)


def fingerprint(array):
    """A hash, and numbers that tell how far arrays are apart if their hashes differ."""
    if array.dtype.kind == "f":
        array[np.isnan(array)] = np.nan  # the same bits for all
    letters = array.dtype.kind == "U"
    values = array.ravel().view(np.uint32) if letters else array.ravel()
    values = values.astype(np.float64)
    values[~np.isfinite(values)] = np.nan
    n_finite = np.isfinite(values).sum()
    kind = f"{array.dtype} {array.shape}, {n_finite} finite"
    hashed = hashlib.sha256(kind.encode() + array.tobytes()).hexdigest()[:16]
    direction = np.random.default_rng(0).standard_normal(len(values))
    projection = np.nansum(direction * values) / np.sqrt(n_finite or 1)
    numbers = np.nan_to_num([np.nanmean(values), np.nanstd(values), projection])
    return {"hash": hashed, "kind": kind, "mean, std, projection": numbers.tolist()}


def fingerprints(name):
    # posterior covariances and what follows from them depend on the threads of BLAS
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore")
        return {key: fingerprint(array) for key, array in flat("", MODELS[name]())}


def difference(before, after):
    """Largest difference of the numbers, relative to the root mean square."""
    if not before or not after or before["kind"] != after["kind"]:
        return np.inf
    numbers = np.array([one["mean, std, projection"] for one in (before, after)])
    scale = np.hypot(numbers[:, 0], numbers[:, 1]).max()
    return float(np.abs(np.diff(numbers, axis=0)).max() / (scale or 1.0))


def compare(name, before, after, tolerance):
    """Print what differs in a model; return whether that is too much."""
    notes, failed = {key: "new" for key in after if key not in before}, not before
    for key, known in before.items():
        found = after.get(key, {"hash": None, "kind": "missing"})
        if found["hash"] != known["hash"]:
            off = difference(known, found)
            kinds = f"{found['kind']}, was {known['kind']}"
            notes[key] = f"off by {off:.2g}" if np.isfinite(off) else kinds
            failed |= off > tolerance or tolerance == 0.0
    changed = {key.partition(".")[0] for key in notes}
    same = dict.fromkeys(key.partition(".")[0] for key in before)
    n_same = len(before) - len(notes.keys() & before.keys())
    same = ", ".join(key for key in same if key not in changed)
    print(f"{name}: {n_same} of {len(before)} are the same: {same}")
    for key, note in notes.items():
        print(f"    {key}: {note}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--compare", metavar="FILE", help="output of an earlier run")
    parser.add_argument("--tolerance", type=float, default=0.0)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    options = parser.parse_args()
    print(f"skbayesnn of {skbayesnn.__path__[0]}", file=sys.stderr)
    machine = {name: version(name) for name in LIBRARIES}
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    machine["blas"] = sorted({pool.get("architecture", "") for pool in pools})
    if not options.compare:
        models = {name: fingerprints(name) for name in options.models}
        print(json.dumps({"machine": machine, "models": models}, indent=1))
        return 0
    with open(options.compare) as file:
        before = json.load(file)
    if before["machine"] != machine:
        print(f"Not comparable: {before['machine']} before, {machine} now.")
    failed = []
    for name in options.models:
        known = before["models"].get(name, {})
        failed += [name] * compare(name, known, fingerprints(name), options.tolerance)
    print(f"Changed: {', '.join(failed)}" if failed else "No result has changed.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
