"""The one model of a run: frozen, no input or output, no judgement."""
