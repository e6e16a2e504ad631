"""How reconcile reads the whole table: cursors, their conditions, and when a pass begins and ends."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

PASS: Final = (
    Mutant(
        "a cursor moves before its page is worked",
        modules.TABLE_PASS,
        "                worked, complete = _worked(page.found, work)\n",
        "                self._store.save(segment.past(page.cursor, page.items))\n"
        "                worked, complete = _worked(page.found, work)\n",
    ),
    Mutant(
        "a cursor moves past failed items",
        modules.TABLE_PASS,
        "if not complete and segment.tries + 1 < MOST_TRIES:",
        "if complete is None:",
    ),
    Mutant(
        "a cursor is not saved",
        modules.TABLE_PASS,
        "saved = moved and self._store.save(moved)",
        "saved = moved",
    ),
    Mutant(
        "a page is passed over",
        modules.TABLE_PASS,
        "after=segment.cursor, ",
        "after=segment.cursor and segment.cursor + '~', ",
    ),
    Mutant("an alarm gets no pass", modules.RECONCILE_ENTRY, "        passes.ask()\n", "        pass\n"),
    Mutant(
        "the last metrics of reconcile are not written",
        modules.RECONCILE_ENTRY,
        "table_pass.asked)\n    telemetry.flush()\n",
        "table_pass.asked)\n",
    ),
    Mutant("a segment is skipped", modules.TABLE_PASS, "sorted(range(table_pass.segments)", "sorted(range(1, 3)"),
    Mutant(
        "a pass ends without its last segment",
        modules.TABLE_PASS,
        "if ends.count(SegmentEnd.DONE) == table_pass.segments:",
        "if ends.count(SegmentEnd.DONE) >= table_pass.segments - 1:",
    ),
    Mutant(
        "a pass never ends",
        modules.TABLE_PASS,
        "if ends.count(SegmentEnd.DONE) == table_pass.segments:",
        "if ends.count(SegmentEnd.DONE) > table_pass.segments:",
    ),
    Mutant(
        "a pass takes over the cursors of the one before",
        modules.PASS_ITEMS,
        "if saved_by != table_pass.number:",
        "if not item:",
    ),
    Mutant(
        "a cursor is saved over another run's",
        modules.PASS_ITEMS,
        'else "#version = :read"',
        'else "(#version = :read OR attribute_exists(#version))"',
    ),
    Mutant(
        "the first save of a cursor ignores another run's",
        modules.PASS_ITEMS,
        'condition = "attribute_not_exists(#version)" if',
        'condition = "(attribute_not_exists(#version) OR attribute_exists(#version))" if',
    ),
    Mutant(
        "an alarm begins no pass",
        "tidemill.entrypoints.reconcile",
        "        passes.ask()\n",
        "        pass\n",
    ),
    Mutant(
        "a pass that was asked for is forgotten",
        modules.PASS_STATE,
        "if self.asked or now - self.began_at >= PASS_INTERVAL:",
        "if now - self.began_at >= PASS_INTERVAL:",
    ),
    Mutant(
        "a pass begins only when it was asked for",
        modules.PASS_STATE,
        "if self.asked or now - self.began_at >= PASS_INTERVAL:",
        "if self.asked:",
    ),
    Mutant(
        "a run holds its pass for ever",
        modules.TABLE_PASS,
        "until = now + min(time_left, _LONGEST_HOLD)",
        "until = now + _LONGEST_HOLD * 999_999",
    ),
)
