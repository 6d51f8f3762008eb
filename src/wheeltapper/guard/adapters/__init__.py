"""The guard in other people's loops. Each module needs its framework only when it is imported.

from wheeltapper.guard.adapters.hf import guard_trainer
from wheeltapper.guard.adapters.lightning import GuardCallback
from wheeltapper.guard.adapters.accelerate import guard_accelerator
from wheeltapper.guard.session import guarded                       # a loop of one's own
"""
