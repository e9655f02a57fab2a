#!/usr/bin/env python3
"""Reads the dashboards with Grafana Labs' own library and writes them again: a key that it does not know, or
that belongs to another kind of panel, is lost on the way. It needs requirements-deploy.txt."""
import json
import sys

from grafana_foundation_sdk.cog import encoder, plugins
from grafana_foundation_sdk.models import dashboard as model

import dashboards


def lost(before, after, path):
    """Paths of what was there before and is not after."""
    if isinstance(before, dict):
        for key, value in before.items():
            if not isinstance(after, dict) or key not in after:
                yield f"{path}.{key}"
            else:
                yield from lost(value, after[key], f"{path}.{key}")
    elif isinstance(before, list):
        for i, value in enumerate(before):
            yield from lost(value, after[i] if i < len(after) else None, f"{path}[{i}]")


def unknown_to_grafana(dashboard):
    written = json.loads(encoder.JSONEncoder().encode(model.Dashboard.from_json(dashboard)))
    return list(lost(dashboard, written, "dashboard"))


def planted():
    """The check itself: a misspelt key of a panel, and an option of another kind of panel."""
    dashboard = dashboards.load(dashboards.files()[0])
    first = dashboards.panels(dashboard)[0]
    first["tittle"] = "x"
    first["options"]["cellHeight"] = "sm"
    return len(unknown_to_grafana(dashboard)) == 2


def main():
    plugins.register_default_plugins()
    found = [f"{path.name}: {key} is unknown" for path in dashboards.files() for key in unknown_to_grafana(dashboards.load(path))]
    if not planted():
        found.append("planted keys were not found")
    print("\n".join(found) if found else f"{len(dashboards.files())} dashboards, every key is known")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
