"""Tables of measured results of state-space networks."""

from result_tables import load, number, spread

KINDS = {
    "states": "hidden states",
    "lags": "lags",
    "automatic": "chosen between them",
}
MEASURED = {
    "damper": "magneto-rheological damper",
    "tanks": "cascaded tanks, V",
    "hair dryer": "hair dryer",
}
ORDERS = (2, 3, 4)
SYSTEMS = {
    "linear": "linear",
    "wiener": "Wiener",
    "hammerstein": "Hammerstein",
    "bilinear": "bilinear",
}


def hidden_states_drives():
    results = load("hidden_states")
    heading = ["ten drives", "error in free run", "in the 95 % band (%)", "seconds"]
    rows = []
    for name, title in KINDS.items():
        if name not in results:
            continue
        of = [[row[key] for row in results[name]] for key in ("error", "coverage")]
        seconds = [row["seconds"] for row in results[name]]
        coverage = spread(of[1], scale=100, show="{:.0f}".format)
        rows.append([title, spread(of[0], 2), coverage, spread(seconds, 2)])
    return heading, rows


def hidden_states_measured():
    results, of_lags = load("hidden_states"), load("measured_systems")
    heading = [
        "test error in free run",
        "hidden states",
        "in the 95 % band (%)",
        "lags",
    ]
    rows = []
    for name, title in MEASURED.items():
        found = [row["test"] for row in results[name]]
        start = 50 if name == "tanks" else 30
        lags = [row[f"test, free run from {start}"] for row in of_lags[name]["chosen"]]
        coverage = [row["coverage"] for row in found]
        rows.append(
            [
                title,
                spread([row["error"] for row in found]),
                spread(coverage, scale=100, show="{:.0f}".format),
                spread(lags),
            ]
        )
    return heading, rows


def state_orders():
    """Per kind of system: fits that found the order, and errors over those at it."""
    results = load("state_orders")
    heading = [
        "system",
        "fits",
        "true order",
        "1 off",
        "error / error at the true order",
    ]
    heading += ["the same without noise"]
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
    heading = ["test error in free run, seconds", "skbayesnn", "jax-sysid"]
    drives = [row for name, row in results.items() if name.startswith("drives")]
    rows = [["ten drives", *(_of_peer(drives, name) for name in heading[1:])]]
    for record, title in MEASURED.items():
        found = [results[record]]
        rows.append([title, *(_of_peer(found, name) for name in heading[1:])])
    return heading, rows


def _of_peer(rows, name):
    errors = [row[name]["error"] for row in rows]
    seconds = sorted(row[name]["seconds"] for row in rows)[len(rows) // 2]
    return f"{spread(errors)}, {number(seconds, 2)} s"
