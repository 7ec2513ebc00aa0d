"""The record of SCReAM's authors: SCReAM beside TCP Prague over DualPI2."""
