"""Hoang (2017): RRTCC on SimPy, by chance idle, busy or saturated networks."""
