"""Run clusters on this computer: the real components as processes, and labs."""
