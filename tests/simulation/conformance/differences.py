"""Where somebody answers otherwise than AWS says: each is a strict xfail, so one that is mended shows."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.conformance.citations import EMULATOR, MOTO, SIMULATED

#: What they do, by backend and by the name of the case.
DIFFERENCES: Final[Mapping[str, Mapping[str, str]]] = {
    SIMULATED: {
        "test_a_page_is_a_megabyte_at_most": "cuts a page by its items: 2, 5 or 1,000 in each seed",
        "test_an_outage_ends_the_retries": "goes on with its three tries",
    },
    MOTO: {
        "test_a_number_is_no_text": "fails on an order between the two types",
        "test_a_path_must_lead_somewhere": "takes some that do not, and does nothing",
        "test_an_index_key_must_be_of_its_type": "takes any",
        "test_whatever_is_used_must_be_named": "fails with a KeyError of its own",
        "test_a_token_makes_a_repeat_harmless": "applies it again",
        "test_a_token_stands_for_its_parameters": "takes no notice of the token",
        "test_four_megabytes_at_most": "takes more",
        "test_what_an_update_finds_cancels_the_transaction": "answers ValidationException, without reasons",
        "test_a_write_that_changes_nothing_is_not_told": "tells it",
        "test_some_characters_are_not_taken": "answers InvalidParameterValue, and takes U+FFFE",
        "test_a_batch_is_a_mebibyte_at_most": "counts characters",
        "test_a_message_is_not_empty": "takes it",
        "test_only_what_is_in_flight_can_be_hidden": "hides the others too",
    },
    EMULATOR: {
        "test_numbers_are_exact": "counts with 28 digits",
        "test_a_path_must_lead_somewhere": "takes some that do not, and does nothing",
        "test_one_attribute_is_written_once": "writes it twice",
        "test_each_clause_comes_once": "takes it twice",
        "test_a_delay_is_a_quarter_of_an_hour_at_most": "takes any",
        "test_one_bad_entry_does_not_spoil_a_batch": "takes any delay",
        "test_a_timeout_is_twelve_hours_at_most": "takes any",
        "test_only_what_is_in_flight_can_be_hidden": "hides the others too",
        "test_a_delete_with_a_stale_receipt_is_no_error": "answers ReceiptHandleIsInvalid",
        "test_a_list_of_nothing_deletes_the_batch": "keeps it",
        "test_a_malformed_answer_keeps_the_batch": "deletes it",
        "test_an_answer_that_is_no_object_keeps_the_batch": "deletes it",
        "test_an_unknown_id_keeps_the_batch": "deletes it",
    },
}
