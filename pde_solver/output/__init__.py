"""What a run leaves behind: fields for ParaView, checkpoints, laws, tables and pictures.

`summary_figure` is imported from `pde_solver.output.figures`: a run without pictures does not wait for matplotlib.
"""

from pde_solver.output.atomic import prepare_folder, write_atomically
from pde_solver.output.checkpoint import Checkpoint, CheckpointMismatchError, load_checkpoint, save_checkpoint
from pde_solver.output.checkpoint_series import CheckpointSeries
from pde_solver.output.fields import FieldWriter
from pde_solver.output.frames import Frame, collect_frame, read_frames, read_label_frames
from pde_solver.output.laws import LawWriter, read_laws
from pde_solver.output.tables import History, format_table, read_history, write_csv, write_history

__all__ = [
    "Checkpoint",
    "CheckpointMismatchError",
    "CheckpointSeries",
    "FieldWriter",
    "Frame",
    "History",
    "LawWriter",
    "collect_frame",
    "format_table",
    "load_checkpoint",
    "prepare_folder",
    "read_frames",
    "read_history",
    "read_label_frames",
    "read_laws",
    "save_checkpoint",
    "write_atomically",
    "write_csv",
    "write_history",
]
