"""The record of SCReAM's authors: beside TCP Prague over DualPI2."""
