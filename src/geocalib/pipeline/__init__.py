"""From photographs to calibrations: ``prepare -> predict -> fit -> refine -> judge``.

Each stage is a function of data to data: ``prepare.prepare`` (a source to what a network wants to
see), ``predict.predict`` (that to a ``NetworkOutput``), and within ``fit.fit`` the fit to fields,
its refinement by lines, and the judgement of what was known beside the pixels.
"""
