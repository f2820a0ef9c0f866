"""Tables of the networks, from doc/results."""

from statistics import median

from result_tables import load, number, spread


def values(entries, key):
    return [entry[key] for entry in entries]


def as_list(entries):
    return entries if isinstance(entries, list) else [entries]


# record of the file, name and unit, key of its error, of its coverage, scale
MEASURED = [
    ("hair dryer", "hair dryer, 300 rows", "test", 30, 1),
    ("damper", "magneto-rheological damper, 2,000 rows", "test", 30, 1),
    ("robot arm", "robot arm, 512 rows", "test", 30, 1),
    ("heat exchanger", "heat exchanger, 3,000 rows", "test", 30, 1),
    ("tanks", "Cascaded Tanks (V), 1,024 rows, from 50 outputs", "test", 50, 1),
    ("tanks", "the same, from 5 outputs", "test", 5, 1),
    (
        "silverbox, 1000 rows",
        "Silverbox (mV), 1,000 rows: multisine",
        "multisine",
        50,
        1,
    ),
    ("silverbox, 1000 rows", "arrow", "arrow", 50, 1),
    (
        "silverbox, 1000 rows",
        "arrow without extrapolation",
        "no_extrapolation",
        50,
        1,
    ),
    ("EMPS", "EMPS (mm), 24,841 rows", "test", 20, 1),
]


def measured_systems():
    results = load("measured_systems")
    peers = {"mean": "training mean", "ARX": "linear ARX", "MLP": "`MLPRegressor`"}
    peers |= {"fastcan": "fastcan", "SysIdentPy": "SysIdentPy"}
    heading = ["record (unit of the errors)"]
    for estimator in ("DynamicSystemRegressor", "SparseBayesNARXRegressorCV"):
        heading += [f"`{estimator}`", "rows in its 95 % band (%)", "its seconds"]
    heading += peers.values()
    rows = []
    for record, title, test, start, scale in MEASURED:
        error = f"{test}, free run from {start}"
        line = [title]
        for part in ("automatic", "chosen"):
            found = results[record].get(part)
            line += chosen_cells(found, test, start, scale) if found else ["–"] * 3
        for peer in peers:
            found = results[record].get("peers", {}).get(peer)
            found = found and spread(values(as_list(found), error), scale=scale)
            line.append(found or "–")
        rows.append(line)
    return heading, rows


def chosen_cells(chosen, test, start, scale):
    """Errors of the free run, coverage of its bands, and seconds of a search."""
    coverage = [entry[f"{test}, coverage from {start}"]["0.95"] for entry in chosen]
    whole = "{:.0f}".format
    return [
        spread(values(chosen, f"{test}, free run from {start}"), scale=scale),
        spread(coverage, scale=100, show=whole),
        spread([median(values(chosen, "seconds"))], show=whole),
    ]


def measured_kinds():
    """Held-out errors of the best candidate of each kind, and what was chosen."""
    kinds = {"linear": "linear", "network": "lags", "states": "hidden states"}
    heading = ["record", *kinds.values()]
    heading += ["networks of hidden states, of all networks of the ensemble"]
    rows, done = [], set()
    for record, title, *_ in MEASURED:
        found = load("measured_systems")[record].get("automatic")
        if not found or record in done:
            continue
        done.add(record)
        cells = []
        for kind in kinds:
            errors = [run["held out"].get(kind) for run in found]
            complete = None not in errors
            cells.append(spread(errors) if complete else "not close")
        chosen = [
            f"{sum('states' in str(one[0]) for one in run['chosen'])} of "
            f"{len(run['chosen'])}"
            for run in found
        ]
        title = title.partition(":")[0].replace(", from 50 outputs", "")
        rows.append([title, *cells, ", ".join(chosen)])
    return heading, rows


def measured_ensembles():
    """Errors of ensembles of several sizes, drawn from 24 networks."""
    heading, rows, results = None, [], load("measured_systems")
    records = {name: title for name, title, *_ in reversed(MEASURED)}
    for record in dict.fromkeys(name for name, *_ in MEASURED):
        sizes = results[record].get("ensemble sizes")
        if sizes is None:
            continue
        heading = ["record"]
        heading += [f"{n} network" if n == "1" else f"{n} networks" for n in sizes]
        cells = [
            f"{number(half)} ({number(low)} to {number(high)})"
            for low, half, high in sizes.values()
        ]
        rows.append([records[record], *cells])
    return heading, rows


def measured_one_step():
    results = load("measured_systems")
    peers = ["ARX", "MLP", "fastcan", "SysIdentPy"]
    heading = ["record (unit of the errors)"]
    heading += ['search with `focus="prediction"`', 'with `focus="simulation"`']
    heading += ["linear ARX", "`MLPRegressor`", *peers[2:]]
    rows = []
    for record, title, test, start, scale in MEASURED:
        error, found = f"{test}, one step", results[record]
        # the same rows, however many outputs a free run was given
        if start == 5 or "one step" not in found:
            continue
        columns = [found["one step"], found["chosen"]]
        columns += [as_list(found["peers"][peer]) for peer in peers]
        cells = [spread(values(column, error), scale=scale) for column in columns]
        rows.append([title.replace(", from 50 outputs", ""), *cells])
    return heading, rows


def simulated_systems():
    names = {
        "Narendra, 500 rows": "Narendra's product, 500 rows",
        "hysteresis, 1000 rows": "Bouc-Wen hysteresis, 1,000 rows",
        "two by two, 500 rows": "two inputs, two outputs, 500 rows",
    }
    columns = {
        "chosen": "`SparseBayesNARXRegressorCV()`",
        "simulation, 5 lags": '`focus="simulation"`, 5 lags',
        "prediction, 5 lags": '`focus="prediction"`, 5 lags',
        "linear, 5 lags": "linear, 5 lags",
    }
    rows = []
    for system, found in load("systems").items():
        cells = [spread(found[c]["fit"], show="{:.1f}".format) for c in columns]
        rows.append([names.get(system, system), *cells])
    return ["system", *columns.values()], rows


def differences():
    heading = ["rows taken", "lags", '`output="level"`', '`output="difference"`']
    rows = []
    found = load("differences")["5 units, without u(t)"]
    for every in (1, 5, 10, 20):
        taken = "all (1 ms)" if every == 1 else f"every {every}th"
        for lags in (2, 3, 5):
            cells = [
                three(found[f"every {every}, {output}, {lags} lags"], tenths)
                for output in ("level", "difference")
            ]
            rows.append([taken, str(lags), *cells])
    return heading, rows


def automatic_output():
    """Free runs through unseen records, and what was chosen for them."""
    outputs = ("auto", "level", "difference")
    heading = ["system", 'chosen by "auto"']
    heading += [f'`output="{output}"`' for output in outputs]
    rows = []
    for name, found in load("integrating_systems").items():
        chosen = sorted({run["chosen"] for run in found["auto"]})
        errors = [[run["error"] for run in found[output]] for output in outputs]
        rows.append([name, ", ".join(chosen), *map(spread, errors)])
    return heading, rows


def tenths(value):
    """As many digits as that benchmark prints."""
    return f"{value:.1f}" if value < 100 else number(value)


def three(entry, show=number):
    """Median (smallest to largest) of an entry that has only these."""
    limits = [float("inf") if v is None else v for v in entry]
    return "{} ({} to {})".format(*map(show, limits))


def heavy_tails_strengths():
    found = load("heavy_tails")["strengths"]
    heading = ["`reg_lambda`", '`noise="gaussian"`', '`noise="student_t"`']
    return heading, [
        [
            strength + (" (default)" if strength == "4" else ""),
            *(three(by_noise[noise]) for noise in ("gaussian", "student_t")),
        ]
        for strength, by_noise in found.items()
    ]


def heavy_tails_wrong_rows():
    kinds = ["none", "stuck", "off", "single"]
    heading = ["record", "`focus`", "`noise`", "no wrong row", *kinds[1:]]
    rows = []
    for record, by_focus in load("heavy_tails")["wrong rows"].items():
        for focus, by_noise in by_focus.items():
            for noise, by_kind in by_noise.items():
                medians = [number(by_kind[kind][0]) for kind in kinds]
                rows.append([record, focus, noise, *medians])
    return heading, rows


CASES = {
    "linear": {
        "prior and noise known": "linear, prior and noise known",
        "learned, one variance": 'linear, learned, one variance (`groups="layer"`)',
        "learned, a variance each": "linear, learned, default groups",
    },
    "tanh": {
        "prior and noise known": "tanh, prior and noise known",
        "learned, a variance a layer": 'tanh, learned, `groups="layer"`',
        "learned, default groups": "tanh, learned, default groups",
    },
}


def coverage_of_drawn_systems():
    results = load("uncertainty")["prior"]
    columns = {
        "one_step": "one step",
        "free_run": "free run",
        "free_run_draws": "free run, draws",
        "function": "function",
        "weights": "weights",
    }
    rows = []
    for kind, cases in CASES.items():
        for case, title in cases.items():
            line = [title]
            for column in columns:
                found = results[kind][case].get(column)
                cells = []
                # levels are 50, 90 and 95 %
                for k in (1, 2) if found else ():
                    mean, error = found["mean"][k], found["standard_error"][k]
                    cells.append(f"{100 * mean:.1f} ({100 * error:.1f})")
                line.append(", ".join(cells))
            rows.append(line)
    return ["systems, prior and noise", *columns.values()], rows


def coverage_on_the_tanks():
    results = load("uncertainty")
    titles = {
        "prediction, 1 network": "defaults, 5 lags",
        "prediction, 4 networks": "the same, ensemble of 4",
        "simulation, 1 network": (
            '`focus="simulation"`, 20 lags, 5 units, `reg_lambda=20`'
        ),
        "simulation, 4 networks": "the same, ensemble of 4",
    }

    def percents(levels):
        return ", ".join(f"{100 * value:.0f}" for value in levels)

    rows = []
    for case, title in titles.items():
        found = {key: entry["median"] for key, entry in results["real"][case].items()}
        rows.append(
            [
                title,
                f"{found['one_step_crps']:.3f}",
                percents(found["one_step_coverage"]),
                f"{found['free_run_rmse']:.2f}",
                f"{found['free_run_crps']:.3f}",
                percents(found["free_run_coverage"]),
                f"{found['free_run_draws_crps']:.3f}",
                percents(found["free_run_draws_coverage"]),
            ]
        )
    heading = ["model", "one step: CRPS (V)", "one step: coverage (%)"]
    heading += ["free run: RMSE (V)", "free run: CRPS (V)", "free run: coverage (%)"]
    heading += ["draws: CRPS (V)", "draws: coverage (%)"]
    one, free = results["gp"]["one_step"], results["gp"]["free_run"]
    rows.append(
        [
            "Gaussian process NARX",
            f"{one['crps_volt']:.3f}",
            percents(one["coverage"].values()),
            f"{free['rmse_volt']:.2f}",
            "",
            "",
            f"{free['crps_volt']:.3f}",
            percents(free["coverage"].values()),
        ]
    )
    return heading, rows


def with_error(mean, error, text):
    """A mean with its standard error in brackets."""
    return f"{text} ({text})".format(mean, error)


def against_monte_carlo():
    results = load("uncertainty")["mcmc"]
    titles = {
        "mcmc": "Monte Carlo",
        "full": "full",
        "diag, same mode": "diagonal, same mode",
        "diag, own fit": '`curvature="diag"`, own fit',
    }
    heading = ["rows", "posterior", "spread: median, mean", "function: 90, 95 % cover"]
    heading += ["free run: 90, 95 % cover", "CRPS one step, free run"]
    rows = []
    for n_rows in ("40", "200"):
        found = results[f"n_train {n_rows}"]
        n_systems = found["checks"]["n_compared"]
        for key, title in titles.items():
            entry = found[key]
            ratio, cover = entry["function_std_ratio"], entry["function_coverage"]
            median_ratio = entry["medians"]["function_std_ratio"]
            mean_ratio = with_error(ratio["mean"], ratio["standard_error"], "{:.2f}")
            spread_cell = f"{median_ratio:.2f}, {mean_ratio}"
            rows.append(
                [
                    f"{n_rows} ({n_systems} systems)",
                    title,
                    "1" if key == "mcmc" else spread_cell,
                    ", ".join(
                        with_error(100 * mean, 100 * error, "{:.0f}")
                        for mean, error in zip(
                            cover["mean"][1:], cover["standard_error"][1:], strict=True
                        )
                    ),
                    ", ".join(
                        f"{100 * mean:.0f}"
                        for mean in entry["free_run_coverage"]["mean"][1:]
                    ),
                    f"{entry['one_step_crps']['mean']:.4f}, "
                    f"{entry['free_run_crps']['mean']:.4f}",
                ]
            )
    return heading, rows


def paper_free_run():
    parts = load("paper_free_run")["parts"]
    groups = {
        "shape-wise": 'by weight ("shape-wise")',
        "row-wise": "by row",
        "column-wise": "by column",
        "no penalty": "no penalty",
    }
    rows = []
    for group, title in groups.items():
        line = [title]
        for focus in ("prediction", "simulation"):
            found = parts.get(f"{focus}, {group}")
            line.append(spread(values(found, "rmse_volt_50")) if found else "")
        rows.append(line)
    return ["groups of weights", '`focus="prediction"`', '`focus="simulation"`'], rows


def tanks_one_step():
    results = load("cascaded_tanks")
    columns = {"found by search": "found by search", "defaults": "defaults, one start"}
    lines = {
        "one_step_rmse": ("One step ahead, RMSE (V)", 1, "{:.4f}"),
        "free_run_rmse": ("Free run, RMSE (V)", 1, "{:.2f}"),
        "one_step_inside_2_sigma": (
            "Inside the 2-sigma band, one step",
            100,
            "{:.0f} %",
        ),
        "free_run_inside_2_sigma": (
            "Inside the 2-sigma band, free run",
            100,
            "{:.0f} %",
        ),
        "weights": ("Weights kept", 1, "{:.0f}"),
    }
    rows = [
        [
            title,
            *(
                spread(results[column][key]["values"], scale=scale, show=text.format)
                for column in columns
            ),
        ]
        for key, (title, scale, text) in lines.items()
    ]
    return ["result", *columns.values()], rows


def tanks_free_run():
    results = load("free_run")
    entry = results["single"]
    rows = [
        [
            f"from {given} measured outputs",
            spread(entry[f"rmse (n_init {given})"]["values"]),
            spread(entry[f"crps (n_init {given})"]["values"]),
            spread(
                entry[f"coverage_95 (n_init {given})"]["values"],
                scale=100,
                show="{:.0f} %".format,
            ),
        ]
        for given in (50, 5)
    ]
    return ["free run", "RMSE (V)", "CRPS (V)", "inside the 95 % band"], rows


def silverbox():
    rows = []
    for size, found in load("free_run")["silverbox"].items():
        n_seeds = len(found["seconds"]["values"])
        columns = ["multisine mV", "arrow mV", "no_extrapolation mV", "seconds"]
        cells = [spread(found[c]["values"]) for c in columns]
        rows.append([f"{int(size.split()[0]):,} ({n_seeds} seeds)", *cells])
    heading = ["samples to learn from", "multisine (mV)", "arrow (mV)"]
    return [*heading, "arrow without extrapolation (mV)", "seconds"], rows


def ensembles_one_step():
    found = load("free_run")["one_step"]
    rows = [[title, spread(entry["values"])] for title, entry in found.items()]
    return ["model", "one step ahead, RMSE (V)"], rows


def streaming():
    rows = []
    for model, found in load("streaming").items():
        if not isinstance(found, dict):
            continue
        cells = [f"{found[call]['median']:.2f}" for call in ("step", "step and update")]
        rows.append([model, ", ".join(map(str, found["weights"])), *cells])
    return ["model", "weights", "`step` (µs)", "`step` and `update` (µs)"], rows


def exports():
    """Difference from a stream and time of a step, by form of the model."""
    titles = {
        "prediction, 5 lags": "one step, 5 lags",
        "simulation, 20 lags": "free run, 20 lags",
        "ensemble of 4, 5 lags": "ensemble of 4, 5 lags",
    }
    forms = ["C, double", "C, float", "onnxruntime, float64", "onnxruntime, float32"]

    def cell(found):
        difference, ns = found["largest difference"], found["ns"]["min"]
        time = f"{ns:.0f} ns" if ns < 1000 else f"{number(ns / 1000, 2)} µs"
        return f"{difference:.0e} V, {time}" if difference else f"0, {time}"

    rows = []
    for name, title in titles.items():
        found = load("exports")[name]
        step = f"{number(found['stream.step']['ns']['min'] / 1000, 2)} µs"
        rows.append([title, *(cell(found[form]) for form in forms), step])
    return ["model", *forms, "`stream.step` from Python"], rows


# inputs with an effect, of all, in the data of examples/benchmarks/static_regression.py
EFFECTIVE_INPUTS = {
    "diabetes": "unknown, of 10",
    "Friedman 1": "5 of 10",
    "Friedman 2": "4 of 4",
    "Friedman 3": "4 of 4",
    "30 irrelevant inputs": "3 of 33",
    "three directions": "15 of 15",
    "products": "8 of 8",
    "a step": "2 of 3",
    "waves": "2 of 2",
    "faint": "2 of 2",
}


def static_regression():
    """Errors of all methods, coverage where there are bands, inputs that are kept."""
    names = "SparseBayesMLPRegressor", "MLPRegressor", "GaussianProcessRegressor"
    ours, perceptron, process = names
    heading = [f"`{ours}`", "rows in its 95 % band (%)", "inputs that it kept"]
    heading += [f"`{perceptron}`", f"`{process}`", "rows in its 95 % band (%)"]

    def cells(found, *keys):
        scales = {"coverage": 100}
        return [spread(values(found, k), scale=scales.get(k, 1)) for k in keys]

    rows = []
    for title, found in load("static_regression").items():
        line = cells(found[ours], "rmse", "coverage")
        line += [spread(values(found[ours], "n_inputs"), show=lambda n: f"{n:.0f}")]
        line += cells(found[perceptron], "rmse")
        line += cells(found[process], "rmse", "coverage")
        rows.append([title, EFFECTIVE_INPUTS[title.partition(",")[0]], *line])
    return ["data", "inputs with an effect", *heading], rows
