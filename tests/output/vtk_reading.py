"""Read a VTKHDF file as ParaView does; run as a child process. Prints what was found as JSON. No OpenGL modules."""

import json
import sys

from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline
from vtkmodules.vtkIOHDF import vtkHDFReader

reader = vtkHDFReader()
reader.SetFileName(sys.argv[1])
reader.UpdateInformation()
steps = reader.GetOutputInformation(0).Get(vtkStreamingDemandDrivenPipeline.TIME_STEPS()) or (
    0.0,
)  # VTK calls one depth no time
found = []
for t in steps:
    reader.GetOutputInformation(0).Set(vtkStreamingDemandDrivenPipeline.UPDATE_TIME_STEP(), t)
    reader.UpdateTimeStep(t)
    grid = reader.GetOutput()
    if grid.IsA("vtkPartitionedDataSet"):
        grid = grid.GetPartition(0)
    step = {"t": t, "points": vtk_to_numpy(grid.GetPoints().GetData()).tolist(), "cells": grid.GetNumberOfCells()}
    step["types"] = sorted({grid.GetCellType(i) for i in range(grid.GetNumberOfCells())})
    last = grid.GetCell(grid.GetNumberOfCells() - 1)
    step["last cell"] = [last.GetPointId(i) for i in range(last.GetNumberOfPoints())]
    for kind, data in (("point", grid.GetPointData()), ("cell", grid.GetCellData())):
        arrays = [data.GetArray(i) for i in range(data.GetNumberOfArrays())]
        step[kind] = {array.GetName(): vtk_to_numpy(array).tolist() for array in arrays}
    found.append(step)
print(json.dumps(found))
