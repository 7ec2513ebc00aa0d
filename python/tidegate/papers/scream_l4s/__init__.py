"""The record of SCReAM's authors: SCReAM against TCP Prague over DualPI2."""
