"""What the simulator plays for a mutant: a story by its name, or a seed by its number.

Nothing here imports the engine until it is played.
"""

from collections.abc import Sequence

from tests.simulation.stories import recorded

Play = str | int


def plays(seeds: int) -> Sequence[Play]:
    """The stories, which take a moment each, and then that many seeds."""
    return [*recorded(), *range(seeds)]


def fault_of(play: Play) -> str | None:
    """What is wrong with it; None if nothing."""
    if isinstance(play, str):
        from tests.simulation.stories.tell import difference

        try:
            differs = difference(play)
        except Exception as error:  # noqa: BLE001 - the story cannot go on
            return f"story {play}: {type(error).__name__}: {error}"
        return None if differs is None else f"story {play}: {differs}"
    from tests.simulation.run_one_seed import simulate

    violation = simulate(play).violation
    return None if violation is None else f"seed {play}: {violation.check}: {violation.what[-160:]}"
