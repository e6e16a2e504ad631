"""The simulated AWS against what AWS documents, a sentence for each case; moto, the emulator and botocore with it."""
