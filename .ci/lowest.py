"""Print constraints for pip: the lowest release that pyproject.toml allows of each."""

import re
import tomllib
from pathlib import Path

root = Path(__file__).resolve().parents[1]
metadata = (root / "pyproject.toml").read_text(encoding="utf-8")
project = tomllib.loads(metadata)["project"]
requirements = list(project["dependencies"])
for extra in project["optional-dependencies"].values():
    requirements += extra

lowest = {}
for requirement in requirements:
    if requirement.startswith(f"{project['name']}["):
        continue  # other extras
    found = re.match(r"([\w.-]+)>=(\d+(?:\.\d+)*)(,|$)", requirement)
    if found is None:
        raise SystemExit(f"{requirement}: expected a requirement like name>=1.2")
    release = tuple(int(part) for part in found[2].split("."))
    # an extra may ask for more than another
    lowest[found[1]] = max(release, lowest.get(found[1], release))

for name, release in lowest.items():
    print(f"{name}=={'.'.join(map(str, release))}")
