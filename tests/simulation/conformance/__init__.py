"""The simulated AWS against what AWS documents, a sentence for each case; moto answers the same where it can."""
