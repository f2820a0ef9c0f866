"""Tables of measured results of state-space networks."""

from result_tables import load, number, spread
from tables_of_systems import MEASURED, values

PEER_RECORDS = {
    "damper": "magneto-rheological damper",
    "tanks": "cascaded tanks (V)",
    "hair dryer": "hair dryer",
}
HEADING = [
    "error in free run",
    "rows in its 95 % band (%)",
    "error one step ahead",
    "rows in its 95 % band (%)",
]
SYSTEMS = {
    "linear": "linear",
    "wiener": "Wiener",
    "hammerstein": "Hammerstein",
    "bilinear": "bilinear",
}


def hidden_states_drives():
    """Ten simulated drives: free runs and one step, with the rows in their bands."""
    titles = {
        "states": "`SparseBayesStateSpaceRegressor`",
        "lags": "`SparseBayesNARXRegressorCV`",
        "automatic": "`DynamicSystemRegressor`",
    }
    heading = ["estimator", *HEADING]
    rows = []
    for name, title in titles.items():
        found = load("hidden_states").get(name)
        if found:
            rows.append([title, *both_kinds(found)])
    return heading, rows


def hidden_states_measured():
    """Hidden states beside the lags of the measured systems."""
    heading = ["record (unit of the errors)"]
    heading += [f"hidden states: {column}" for column in HEADING]
    heading += ["lags: error in free run"]
    rows = []
    for record, title, test, start, scale in MEASURED:
        runs = [
            run[test] for run in load("hidden_states").get(record, ()) if test in run
        ]
        lags = load("measured_systems")[record].get("chosen")
        if not (runs and lags) or start == 5:
            continue
        lags = spread(values(lags, f"{test}, free run from {start}"), scale=scale)
        rows.append([title.removesuffix(", from 50 outputs"), *both_kinds(runs), lags])
    return heading, rows


def both_kinds(found):
    """Errors and coverages in free run and, where it was measured, of one step."""
    cells = []
    for kind in ("", "one_step_"):
        if f"{kind}error" not in found[0]:
            cells += ["", ""]
            continue
        coverage = values(found, f"{kind}coverage")
        cells.append(spread(values(found, f"{kind}error")))
        cells.append(spread(coverage, scale=100, show="{:.0f}".format))
    return cells


def state_orders():
    """Per kind of system: fits that found the order, and errors over those at it."""
    results = load("state_orders")
    heading = ["kind of system", "fits", "fits with the true number of states"]
    heading += ["fits with one more or less", "error / error with the true number"]
    heading += ["the same without the noise of the test record"]
    rows = []
    for kind, title in SYSTEMS.items():
        found = [row for row in results if row["kind"] == kind]
        off = [abs(row["found, offered"] - row["order"]) for row in found]
        line = [title, str(len(found)), str(off.count(0)), str(off.count(1))]
        for what in ("error", "error without noise"):
            ratio = [row[f"{what}, offered"] / row[f"{what}, true"] for row in found]
            line.append(spread(ratio, show="{:.2f}".format))
        rows.append(line)
    return heading, rows


def state_space_peer():
    results = load("state_space_peer")
    names = "skbayesnn", "jax-sysid"
    heading = ["record (unit of the errors)"]
    heading += [f"{name}: error in free run, seconds" for name in names]
    drives = [row for name, row in results.items() if name.startswith("drives")]
    rows = [["ten drives", *(_of_peer(drives, name) for name in names)]]
    for record, title in PEER_RECORDS.items():
        found = [results[record]]
        rows.append([title, *(_of_peer(found, name) for name in names)])
    return heading, rows


def _of_peer(rows, name):
    errors = [row[name]["error"] for row in rows]
    seconds = sorted(row[name]["seconds"] for row in rows)[len(rows) // 2]
    return f"{spread(errors)}, {number(seconds, 2)} s"
