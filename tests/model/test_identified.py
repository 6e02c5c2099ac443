"""Model files: what is taken, what is refused, and that nothing is lost on the way."""

import json

import numpy as np
import pytest
from edits import in_any_order
from hypothesis import given
from hypothesis import strategies as st

from netctrl.core.errors import FileError, InvalidValue
from netctrl.model.datasets import model_path, model_schema, models
from netctrl.model.identified import Identification, IdentifiedModel, model_json_schema, read_model

MIN = {"A": [[0.5]], "B": [[1.0]], "C": [[2.0]], "D": [[0.0]], "dt": 1.0}


def test_the_printed_connet_model_has_the_printed_poles():
    model = read_model(model_path("connet-paper"))
    assert "connet-paper" in models()
    assert sorted(np.linalg.eigvals(model.A)) == pytest.approx([0.173309, 0.876991], abs=1e-6)
    gain = model.C @ np.linalg.solve(np.eye(2) - model.A, model.B) + model.D
    assert gain.ravel() == pytest.approx([0.026690, 0.019849], abs=1e-6)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_model_comes_back_as_it_was(tmp_path_factory, seed, noise):
    rng = np.random.default_rng(seed)
    n, m, p = rng.integers(1, 4, 3)
    found = Identification(
        method="n4sid",
        order=int(n),
        horizon=8,
        samples=100,
        segments=1,
        singular_values=rng.random(8),
        vaf=rng.random(p),
    )
    root = rng.normal(size=(p, p))
    model = IdentifiedModel(
        A=rng.normal(size=(n, n)),
        B=rng.normal(size=(n, m)),
        C=rng.normal(size=(p, n)),
        D=rng.normal(size=(p, m)),
        dt=0.1,
        input_offset=rng.normal(size=m),
        output_offset=rng.normal(size=p),
        K=rng.normal(size=(n, p)) if noise else None,
        innovation_covariance=root @ root.T if noise else None,
        identification=found,
    )
    path = tmp_path_factory.mktemp("model") / "model.json"
    model.save(path)
    assert read_model(path).to_json() == model.to_json()
    assert np.array_equal(read_model(path).A, model.A)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dt": -1}, "dt: got -1.0, takes a sampling interval above 0"),
        ({"A": [[1, 2]]}, "A: got 'shape (1, 2)'"),
        ({"A": [["x"]]}, "nested lists of finite numbers"),
        ({"A": [[1], [2, 3]]}, "nested lists of finite numbers"),
        ({"Q": 1}, "unknown key `Q`"),
        ({"K": [[1]]}, "both or neither"),
        ({"K": [[1]], "innovation_covariance": [[-1]]}, "covariance"),
        ({"outputs": ["a", "b"]}, "1 different names"),
        ({"input_range": [[2, 1]]}, "lowest and highest"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path, change, said):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(MIN | change))
    with pytest.raises(FileError, match="not a model") as caught:
        read_model(path)
    assert said in str(caught.value)


def test_a_bare_model_is_enough_and_is_copied():
    A = np.array([[0.5]])
    model = IdentifiedModel(**(MIN | {"A": A}))
    A[0, 0] = 2.0
    assert model.A[0, 0] == 0.5
    assert (model.inputs, model.outputs, model.input_offset.tolist()) == (("u1",), ("y1",), [0.0])
    with pytest.raises(ValueError, match="read-only"):
        model.A[0, 0] = 1.0
    with pytest.raises(InvalidValue, match="none such"):
        model_path("none such")


@pytest.mark.parametrize("field", ["identification", "provenance", "inputs", "output_units"])
def test_fields_of_another_kind_are_refused(field):
    with pytest.raises(InvalidValue) as refusal:
        IdentifiedModel(**(MIN | {field: 1}))
    assert refusal.value.argument == field


def test_the_published_schema_is_the_one_of_this_version_and_takes_models():
    import jsonschema

    assert in_any_order(model_schema()) == in_any_order(model_json_schema())
    jsonschema.Draft202012Validator.check_schema(model_schema())
    jsonschema.validate(json.loads(read_model(model_path("connet-paper")).to_json()), model_schema())
    jsonschema.validate(MIN, model_schema())
