"""Objects of the user that must be destroyed if what they are made for fails."""

from __future__ import annotations

from noria.plugins.calls import Instance


class Owned:
    """Destroys what was added when the block is left without `keep`; detaches what was attached."""

    def __init__(self) -> None:
        self._instances: list[Instance] = []
        self._attached: list[Instance] = []

    def add(self, instance: Instance) -> Instance:
        """Look after `instance`."""
        self._instances.append(instance)
        return instance

    def detach(self, instance: Instance) -> None:
        """`instance` was attached to a context: detach it before it is destroyed."""
        self._attached.append(instance)

    def keep(self) -> None:
        """All went well: somebody else looks after them from now on."""
        self._instances.clear()
        self._attached.clear()

    def __enter__(self) -> Owned:
        return self

    def __exit__(self, *_: object) -> None:
        for instance in self._instances:
            if instance in self._attached:
                instance.quietly("destroy", "detach_from_context")
            instance.destroy()
