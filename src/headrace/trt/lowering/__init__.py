"""From the layers of a network to a graph that engines are built from. Start at `graph.py`."""
