"""OpenVINO's models (IR): a graph in XML, weights beside it. Only running one needs openvino.

Start at `wrapper.py`.
"""
