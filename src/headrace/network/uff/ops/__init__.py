"""How each UFF operation becomes ONNX operators; one file per family."""
