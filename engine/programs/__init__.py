"""Programs: what people hand to an engine, from a file or an archive to the graph of a job.

a job file          flights.py                       runs as `python flights.py`
a folder or zip     __main__.py, or its only module  runs as `python FOLDER`
a wheel             a package with __main__.py       runs as `python -m PACKAGE`
package.module      of any of them                   runs as `python -m package.module`
package.module:fn   of any of them                   the function is called, see `stream.calling`

packing.py ──zip──▶ intake.py (archive.py, requirements.py) ──folder──▶ loading.py ──▶ JobGraph
(client)            (step of an upload)                                 (build step)
"""
