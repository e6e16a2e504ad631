"""The budgets of the design, and what a run says about them. A missed budget fails nothing that is timed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

#: A small payload.
SMALL: Final = "0"
SLOW_BATCH: Final = "batch, 20 ms a call, 0 ms of work"
SLOW_BATCH_WITH_WORK: Final = "batch, 20 ms a call, 50 ms of work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    name: str
    textbook: float | None
    tidemill: float
    #: The largest of `held_against_budget` that the budget allows.
    budget: float
    #: Whether the budget is for the ratio to textbook, and not for the figure of Tidemill itself.
    of_ratio: bool
    #: The median of the ratios of paired measurements. None: the ratio is that of the two figures.
    paired_ratio: float | None = None

    @property
    def ratio(self) -> float | None:
        if self.paired_ratio is not None:
            return self.paired_ratio
        return self.tidemill / self.textbook if self.textbook else None

    @property
    def held_against_budget(self) -> float:
        return self.ratio or 0.0 if self.of_ratio else self.tidemill

    @property
    def met(self) -> bool:
        return self.held_against_budget <= self.budget


def figures(found: Mapping[str, Any]) -> list[Figure]:
    """Return the figures of the document that `make bench` writes."""

    def exact(name: str, budget: float, *, build: str = "tidemill") -> Figure:
        counted = found["counted"]
        return Figure(
            name=f"{name} per job{_suffix(build)}",
            textbook=counted["textbook"][SMALL][name],
            tidemill=counted[build][SMALL][name],
            budget=budget,
            of_ratio=False,
        )

    def ratio(name: str, budget: float, *path: str, build: str = "tidemill") -> Figure:
        textbook, tidemill = (_at(found, path, each) for each in ("textbook", build))
        name += _suffix(build)
        return Figure(name=name, textbook=textbook, tidemill=tidemill, budget=budget, of_ratio=True)

    def cold_start(function: str, name: str, budget: float) -> Figure:
        """The libraries that both builds import are most of it."""
        measured = found["cold_start"]
        return Figure(
            name=f"cold start of {name}, CPU, ms",
            textbook=measured["textbook"][f"{function}: CPU, ms"],
            tidemill=measured["tidemill"][f"{function}: CPU, ms"],
            budget=budget,
            of_ratio=True,
            paired_ratio=measured["tidemill"][f"{function}: CPU, ratio of the rounds"],
        )

    wall = found["wall"]
    return [
        exact("table writes", 3),
        exact("write units", 3),
        exact("calls", 3.1),
        exact("calls", 1.4, build="grouped"),
        ratio("producer CPU, ms per job", 0.3, "cpu", "producer"),
        ratio("consumer CPU, ms per job", 0.5, "cpu", "consumer"),
        ratio("consumer CPU, ms per job", 0.1, "cpu", "consumer", build="grouped"),
        ratio("batch of 10 at 20 ms a call, ms", 0.06, "wall", SLOW_BATCH),
        Figure(
            name="the same, in two round trips",
            textbook=None,
            tidemill=wall["tidemill"][SLOW_BATCH] / 40,
            budget=1.25,
            of_ratio=False,
        ),
        Figure(
            name="with 50 ms of work, in two round trips and the work",
            textbook=None,
            tidemill=wall["tidemill"][SLOW_BATCH_WITH_WORK] / 90,
            budget=1.25,
            of_ratio=False,
        ),
        *(
            Figure(
                name=f"batch of 100 submissions at {delay} ms a call, in times of one",
                textbook=None,
                tidemill=wall["tidemill"][f"submission of 100 in one batch, {delay} ms a call"]
                / wall["tidemill"][f"submission, {delay} ms a call"],
                budget=1.5,
                of_ratio=False,
            )
            for delay in (5, 20)
        ),
        # One processor then publishes a thousand records a second.
        Figure(
            name="publisher CPU, ms per record",
            textbook=None,
            tidemill=found["cpu"]["tidemill"]["publisher"],
            budget=1,
            of_ratio=False,
        ),
        cold_start("work", "a worker", 1.05),
        cold_start("submit", "submit", 1.1),
        Figure(
            name="log bytes per job",
            textbook=found["log_bytes"]["textbook"],
            tidemill=found["log_bytes"]["tidemill"],
            budget=1536,
            of_ratio=False,
        ),
        ratio("dollars per million jobs", 0.55, "dollars", "total"),
    ]


def _suffix(build: str) -> str:
    return ", grouped commit" if build == "grouped" else ""


def _at(found: Mapping[str, Any], path: tuple[str, ...], build: str) -> float:
    first, name = path
    return float(found[first][build][name])
