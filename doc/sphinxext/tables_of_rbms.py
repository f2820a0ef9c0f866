"""Tables of the RBMs, from doc/results."""

from result_tables import load, number, spread

SETS = ["nltcs", "plants", "dna", "mushrooms", "pumsb_star", "nips", "voting"]


def binary_sets():
    heading = ["set", "independent", "`FrankWolfeRBM()`", "units", "seconds"]
    heading += ["best of the grid", "`BernoulliRBM`"]
    rows = []
    for name in SETS:
        found = load("binary_sets")[name]
        best = found["grid"]["best"]
        rows.append(
            [
                name,
                number(found["independent"], 4),
                *_fits(found["defaults"]),
                f"{number(best['log_likelihood'], 4)} ({best['n_components']} units)",
                number(found["sklearn"]["log_likelihood"], 4),
            ]
        )
    return heading, rows


def rare_features():
    heading = ["set", "values that are 1", "independent", "`FrankWolfeRBM()`", "units"]
    heading += ["seconds", "mixture"]
    rows = []
    for name, found in load("rare_features").items():
        mixture = found["mixture"]
        rows.append(
            [
                name,
                f"{100 * found['frequency']:.0f} %",
                number(found["independent"], 4),
                *_fits(found["defaults"], usual=3),
                f"{number(mixture['log_likelihood'], 4)} "
                f"({mixture['n_components']} components)",
            ]
        )
    return heading, rows


def _fits(entries, usual=5):
    """Likelihoods, units and median seconds of fits with several seeds."""
    units = sorted(entry["n_components"] for entry in entries)
    seconds = sorted(entry["seconds"] for entry in entries)
    likelihoods = [entry["log_likelihood"] for entry in entries]
    seeds = "" if len(entries) == usual else _number_of_seeds(len(entries))
    return [
        spread(likelihoods, 4) + seeds,
        str(units[0]) if units[0] == units[-1] else f"{units[0]} to {units[-1]}",
        f"{seconds[len(seconds) // 2]:,.0f}",
    ]


def _number_of_seeds(n_seeds):
    return f" ({n_seeds} seed{'s' if n_seeds > 1 else ''})"


def frank_wolfe_start():
    rows = []
    for name in SETS:
        entries = load("binary_sets")[name]["defaults"]
        rows.append([name, spread([entry["gain_of_searched"] for entry in entries], 2)])
    return ["set", "Frank-Wolfe less random start, nats"], rows


def images():
    rows = [
        [
            name,
            str(found["n_components"]),
            f"{found['n_updates']:,}",
            f"{found['forward']:.1f}",
            f"{found['reverse']:.1f}",
            f"{found['seconds']:,.0f}",
        ]
        for name, found in load("images").items()
    ]
    return ["images", "units", "updates", "forward", "back", "seconds"], rows


def rbm_classes():
    """Errors in percent of logistic regression, by the features that it gets."""
    titles = {
        "pixels": "binary pixels",
        "centred": "1,000 units",
        "not centred": "1,000 units, `centered=False`",
    }
    rows = []
    for data, name in [("mnist", "MNIST"), ("caltech", "Caltech-101")]:
        for method, title in titles.items():
            found = load("rbm_classes")[data][method]
            errors = (
                spread([100.0 * row[f"{part}_error"] for row in found], 3)
                for part in ("training", "validation", "test")
            )
            rows.append([name, title, *errors])
    return ["images", "features", "training", "validation", "test"], rows


def growth():
    results = load("rbm")
    columns = {"mnist": "MNIST", "caltech": "Caltech-101"}

    def literal(objective, n_corrective_steps):
        return {
            data: [
                entry["log_likelihood"]
                for entry in results[f"literal_{data}"]
                if entry["objective"] == objective
                and entry["n_corrective_steps"] == n_corrective_steps
            ]
            for data in columns
        }

    written, exact = literal("linearized", 0), literal("likelihood", 0)
    grown = {
        data: [entry["log_likelihood"] for entry in results[f"growth_{data}"]]
        for data in columns
    }
    algorithm = "Algorithm 1 as written"
    rows = [
        [f"{algorithm}, best of five penalties", *(pick(written, max))],
        [f"{algorithm}, worst of five penalties", *(pick(written, min))],
        ["exact gain, no corrective steps", *(pick(exact, max))],
        ["`FrankWolfeRBM(100)`, three seeds", *(spread(v, 4) for v in grown.values())],
    ]
    return ["", *columns.values()], rows


def pick(by_data, choose):
    return (number(choose(values), 4) for values in by_data.values())


def figure_1(data):
    parts = load(f"paper_rbm_{data}")["parts"]
    methods = {
        "FW": "FW",
        "CD (random init.)": "CD, random weights, best of 5",
        "CD (FW init.)": "CD from FW",
    }
    rows = []
    for size in sizes(parts, data):
        line = [str(size)]
        for method in methods:
            key = f"{data} | {method} | {size}"
            if f"{key} | ais" not in parts:
                break
            seconds = sum(entry["fit_seconds"] for entry in parts[key])
            line.append(likelihood_cell(parts, key) + f", {seconds:.0f} s")
        else:
            rows.append(line)
    return ["units", *methods.values()], rows


def likelihood_cell(parts, key):
    """Annealing forward with three standard errors, and back where there is one."""
    (ahead,) = parts[f"{key} | ais"]
    error = (ahead["high"] - ahead["low"]) / 2
    text = f"{ahead['log_likelihood']:.1f} ± {error:.1f}"
    if f"{key} | reverse_ais" in parts:
        (back,) = parts[f"{key} | reverse_ais"]
        text += f" ({back['log_likelihood']:.1f})"
    return text


def sizes(parts, data):
    names = (key.split(" | ") for key in parts)
    return sorted({int(n[2]) for n in names if n[:2] == [data, "FW"] and len(n) == 3})


def same_time(data):
    parts = load(f"paper_rbm_{data}")["parts"]
    methods = {
        "CD (random init.)": "best of 5 random starts",
        "CD (FW init.)": "Frank-Wolfe start",
        "CD (random init.), one long run": "one random start, whole time",
    }
    rows = []
    for size in sizes(parts, data):
        found = [parts.get(f"{data} | {method} | {size}") for method in methods]
        if all(found):
            best = (max(entry["validation"] for entry in runs) for runs in found)
            rows.append([str(size), *(f"{value:.1f}" for value in best)])
    return ["units", *methods.values()], rows


def figure_1_mnist():
    return figure_1("mnist")


def figure_1_caltech():
    return figure_1("caltech")


def same_time_mnist():
    return same_time("mnist")


def same_time_caltech():
    return same_time("caltech")


def impute_pixels():
    """Log-losses of hidden pixels."""
    methods = {
        "FrankWolfeRBM": "`FrankWolfeRBM.impute`",
        "KNNImputer": "`KNNImputer`, 20 neighbours",
        "mean of the pixel": "mean of the pixel",
    }
    rows = [
        [f"a {hidden}" if "random" in hidden else f"the {hidden}"]
        + [number(losses[method]) for method in methods]
        for hidden, losses in load("impute_pixels").items()
    ]
    return ["Hidden pixels", *methods.values()], rows


def speed():
    results = load("rbm_speed")
    heading = ["", "seconds", "of the dense products alone", "of scikit-learn"]
    heading.append("of `rbms` on torch")
    rows = []
    for threads, title in [
        ("all BLAS threads", "an epoch of CD-1, BLAS on both cores"),
        ("one BLAS thread", "the same, BLAS on one"),
    ]:
        found = results["epoch"][threads]
        ratio = found["ratio"]["CD-1 centred"]
        others = ("products", "scikit-learn", "rbms CD-1")
        cells = [f"{ratio[other]:.2f}" for other in others]
        rows.append([title, f"{found['seconds']['CD-1 centred']:.3f}", *cells])
    annealing = results["ais"]
    rows.append(
        [
            "a temperature of annealing, 500 chains, `n_jobs=2`",
            f"{annealing['seconds']['AIS, n_jobs=2']:.4f}",
            f"{annealing['ratio']['AIS, n_jobs=2']['products']:.2f}",
            "",
            "",
        ]
    )
    return heading, rows


def speed_by_density():
    results = load("rbm_speed")["density"]
    heading = ["ones", "seconds", "CD-1, of scikit-learn", "PCD-1, of scikit-learn"]
    heading += [f"{title}, on one core" for title in heading[2:]]
    rows = []
    for share in sorted(set(results) - {"rounds", "quick"}, key=float):
        of_both, of_one = (
            results[share][f"{threads} BLAS thread{s}"]
            for threads, s in (("all", "s"), ("one", ""))
        )
        row = [f"{100 * float(share):.0f} %", f"{of_both['seconds']['CD-1']:.3f}"]
        for found in (of_both, of_one):
            row += [
                f"{found['ratio'][label]['scikit-learn']:.2f}"
                for label in ("CD-1", "PCD-1")
            ]
        rows.append(row)
    return heading, rows
