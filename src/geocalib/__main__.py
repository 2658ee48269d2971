"""The entry point of ``python -m geocalib``."""

from geocalib.cli.app import main

if __name__ == "__main__":
    main()
