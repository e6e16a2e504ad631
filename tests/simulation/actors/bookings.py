"""Jobs that record what would undo them, and late corrections that supersede them."""

from random import Random
from typing import Final

from tidemill.domain.submission.submission import Submission

#: Share of seeds with such jobs, and their number. Share of those that are corrected.
_BOOKED: Final = 0.25
_BOOKINGS: Final = 3
_CORRECTED: Final = 0.6
_MOST_CORRECTIONS: Final = 2
_WITHIN_MS: Final = 5_000
#: After the booking. The first ones come before it has begun.
_CORRECTED_WITHIN_MS: Final = (300, 10_000, 60_000, 600_000, 3_000_000)


def bookings(seed: int) -> list[tuple[int, Submission]]:
    """Milliseconds from now, and the submission. Their own chance leaves the other seeds as they are."""
    random = Random(f"bookings {seed}")
    if random.random() >= _BOOKED:
        return []
    made = [(random.randint(0, _WITHIN_MS), _booking(random, number)) for number in range(_BOOKINGS)]
    chance = Random(f"corrections {seed}")
    for at_ms, booking in list(made):
        if chance.random() < _CORRECTED:
            for number in range(chance.randint(1, _MOST_CORRECTIONS)):
                later_ms = at_ms + chance.randint(0, chance.choice(_CORRECTED_WITHIN_MS))
                made.append((later_ms, _correction(chance, booking, number)))
    return made


def _booking(random: Random, number: int) -> Submission:
    return Submission(
        type="sim.books",
        payload={
            "fails": random.choice([0, 0, 1, 9]),
            "seconds": random.choice([0, 1, 9]),
            "count": random.choice([0, 0, 1, 9]),
            "padding": "x" * random.choice([0, 0, 2_000]),
        },
        key=f"books-{number}",
        group=random.choice([None, None, "bookings"]),
    )


def _correction(random: Random, booking: Submission, number: int) -> Submission:
    return Submission(
        type="sim.rebooks",
        payload={"fails": random.choice([0, 0, 1, 9]), "padding": "x" * random.choice([0, 0, 2_000])},
        key=f"re{booking.key}-{number}",
        supersedes=booking.key,
        group=booking.group,
    )
