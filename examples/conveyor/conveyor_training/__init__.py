"""What the two training scripts share: rendered videos, network blocks, an ONNX writer."""
