"""`python -m meshplan COMMAND ...` is `meshplan COMMAND ...`."""

from meshplan.cli import main

if __name__ == "__main__":
    main()
