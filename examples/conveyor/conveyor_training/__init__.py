"""What the two training scripts share: rendered films, network blocks, an ONNX writer."""
