"""What C++ libraries compiled against noria's headers meet: networks, plugins, registry.

The headers' classes are inline code over one table of functions, `noria_host_api_1`, which the
native module defines; this package answers them with the objects Python users have (`noria.trt`,
`noria.plugins`), and presents the library's own classes as Python classes.
"""

from noria.binary.header_markers import uses_host
from noria.host.callback_errors import Told, told
from noria.host.loading import open_shared_object

__all__ = ["Told", "open_shared_object", "told", "uses_host"]
