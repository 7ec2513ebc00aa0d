"""Published documents whose numbers are run again, a folder each: `tidegate paper list`."""
