"""The figures of flexphase: free of pyplot's global state, and shown by notebooks all the same."""

from io import BytesIO

from matplotlib.figure import Figure


class Sheet(Figure):
    """A matplotlib figure that Jupyter shows without pyplot and whatever the backend is."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()
