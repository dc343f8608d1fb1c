from .bars_and_stripes import bars_and_stripes
from .sources import Rows

__all__ = ["Rows", "bars_and_stripes"]
