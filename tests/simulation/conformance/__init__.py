"""Tests of the simulated AWS, one sentence of AWS documentation each. Some also run on moto, the emulator or the SDK."""
