"""On which machine a result was computed."""

import os
import platform
from pathlib import Path


def machine() -> dict[str, str]:
    """Processor, cores, memory and system, in words; what a system does not tell is left out."""
    found = {"system": f"{platform.system()} {platform.release()}, {platform.machine()}"}
    processor = _value(Path("/proc/cpuinfo"), "model name") or platform.processor()
    if processor:
        found["processor"] = processor
    found["cores"] = str(os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count())
    memory = _value(Path("/proc/meminfo"), "MemTotal")
    if memory:
        found["memory"] = f"{int(memory.split()[0]) / 2**20:.1f} GiB"
    return found


def _value(path: Path, key: str) -> str:
    """What stands behind a key in one of the kernel's tables."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")
