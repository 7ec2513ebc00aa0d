"""`python -m tidegate` is the command line."""

from tidegate.cli import script

if __name__ == "__main__":
    script()
