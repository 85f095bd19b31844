"""Seeds as the command line has them."""


def seeds_of(text):
    """FIRST:END, several with commas: 0:3,7:8 is 0, 1, 2 and 7."""
    return [seed for run in text.split(",") for seed in range(*(int(end) for end in run.split(":")))]
