"""OpenConfig's queue management profiles as classes, made from its public YANG models (ocbindings, pyangbind)."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec, module_from_spec
from typing import Any


def read_profiles(tree: dict[str, Any]) -> dict[str, Any]:
    """The JSON of /qos/queue-management-profiles, read into the models' classes and written from them again.

    Unknown keys and values outside of their types or ranges raise AttributeError or ValueError.
    """
    from pyangbind.lib import pybindJSON
    from pyangbind.lib.serialise import pybindJSONDecoder

    profiles = _class()()
    pybindJSONDecoder.load_ietf_json(tree, None, None, obj=profiles)
    written = json.loads(pybindJSON.dumps(profiles, mode="ietf"))
    return {name.removeprefix("openconfig-qos:"): value for name, value in written.items()}


def _class() -> type:
    """The class of the container; its siblings, 200 MB of sources that the packages above it import, are left alone."""
    for name in ("ocbindings", "ocbindings.qos"):
        if name not in sys.modules:
            sys.modules[name] = module_from_spec(find_spec(name))  # with its place, not executed
    from ocbindings.qos.queue_management_profiles import queue_management_profiles

    return queue_management_profiles
