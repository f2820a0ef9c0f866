"""Tables of measured results of state-space networks."""

from result_tables import load, number, spread

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
