import pytest

from headrace.config import ModelConfig
from tests.network.onnx_models import image_model, save


@pytest.fixture
def model_path(tmp_path):
    """A model with a free batch, 3x4x6 images in, `doubled` and `mean` out."""
    return save(image_model(), tmp_path / "m.onnx")


@pytest.fixture
def config(model_path):
    """Makes configs for `model_path`."""

    def make(**values):
        values.setdefault("onnx_file", model_path)
        return ModelConfig(**values)

    return make
