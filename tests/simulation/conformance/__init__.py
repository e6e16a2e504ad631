"""Tests of the simulated AWS, one sentence of AWS documentation each. Some also run on moto or the emulator."""
