"""Synapses and units as hardware has them; the public names are `Device`, `OnDevice`, `Circuit`."""
