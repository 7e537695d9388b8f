package tools_test

import "strings"

// keepInPython is keep of the scripts' shell.
const keepInPython = `
def keep():
    import os, shutil
    if to := os.environ["VERSIONS"]: shutil.copytree(".", to + "/%06d" % len(os.listdir(to)))
`

// python wraps a script for the interpreter of the tests.
func python(script string) string {
	if strings.Contains(script, "keep()") {
		script = keepInPython + script
	}
	return "python3 - <<'EOF'\n" + script + "\nEOF\n"
}

// pythonTools are what Python's own library does to files.
func pythonTools() []tool {
	const temp = `^tmp(\w{8})`
	return []tool{
		{name: "Python open, write, append", needs: "python3", script: python(`
with open("a", "w") as f: f.write("one\n")
keep()
with open("a", "a") as f: f.write("two\n")
keep()
with open("a", "r+") as f: f.seek(4); f.write("TWO")
with open("b", "xb") as f: f.write(bytes(range(256)) * 1000)
try: open("b", "x")
except FileExistsError: print("exists")
with open("c", "w+") as f: f.write("abcdef"); f.seek(2); print(f.read(2)); f.truncate(3)
print(open("a").read(), open("c").read())`)},
		{name: "Python tempfile + os.replace", needs: "python3", before: "seed a", random: temp, script: python(`
import os, tempfile
fd, name = tempfile.mkstemp(dir=".")
with os.fdopen(fd, "w") as f:
    f.write("new\n"); f.flush(); os.fsync(f.fileno())
os.replace(name, "a")
print(open("a").read(), end="")`)},
		{name: "Python a.tmp + os.replace", needs: "python3", before: "seed a", script: python(`
import os
with open("a.tmp", "w") as f: f.write("new\n")
os.replace("a.tmp", "a")
print(open("a").read(), end="")`)},
		{name: "Python NamedTemporaryFile, TemporaryFile", needs: "python3", random: temp, script: python(`
import os, subprocess, tempfile
with tempfile.NamedTemporaryFile("w", dir=".") as f:
    f.write("secret\n"); f.flush()
    print(open(f.name).read(), end=""); subprocess.run(["wc", "-c", f.name], stdout=subprocess.DEVNULL, check=True)
print(os.path.exists(f.name))
with tempfile.TemporaryFile("w+", dir=".") as f:
    f.write("gone\n"); f.seek(0); print(f.read(), end="")
with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as f:
    f.write("kept\n"); os.chmod(f.name, 0o640); os.rename(f.name, "kept")
print(sorted(os.listdir(".")))`)},
		{name: "Python TemporaryDirectory", needs: "python3", random: temp, more: "it is a directory like others", script: python(`
import os, tempfile
with tempfile.TemporaryDirectory(dir=".") as d:
    with open(os.path.join(d, "x"), "w") as f: f.write("x")
print(sorted(os.listdir(".")))`)},
		{name: "Python shutil.copy2, copytree, move", needs: "python3", mtime: true, more: renames, script: python(`
import os, shutil
out = os.environ["OUT"]
shutil.copy2(out + "/in.txt", "a"); shutil.copy2("a", "b"); shutil.copytree(out + "/tree", "t"); keep(); shutil.move("t/one", "t/two"); shutil.move("b", out + "/b")
os.utime("t", (1, 1)); print(sorted(os.listdir("t")))`)},
		{name: "Python zipfile, append", needs: "python3", script: python(`
import zipfile
info = lambda n: zipfile.ZipInfo(n, (2024, 1, 1, 0, 0, 0))
with zipfile.ZipFile("z.zip", "w", zipfile.ZIP_DEFLATED) as z: z.writestr(info("a"), "a" * 10000)
keep()
with zipfile.ZipFile("z.zip", "a") as z: z.writestr(info("b"), "b" * 5)
print(zipfile.ZipFile("z.zip").namelist(), zipfile.ZipFile("z.zip").testzip())`)},
		{name: "Python fileinput, inplace", needs: "python3", before: `seed a; chmod 640 a`, script: python(`
import fileinput
for line in fileinput.input("a", inplace=True): print(line.replace("line", "row"), end="")`)},
		{name: "Python fileinput, inplace, backup", needs: "python3", before: `seed a; chmod 640 a`, script: python(`
import fileinput
for line in fileinput.input("a", inplace=True, backup=".bak"): print(line.upper(), end="")`)},
		{name: "Python mmap", needs: "python3", before: `seed a`, script: python(`
import mmap
with open("a", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    m[0:4] = b"LINE"; m[7:11] = b"LINE"
with open("b", "w+b") as f:
    f.truncate(10000)
    with mmap.mmap(f.fileno(), 0) as m: m[5000:5005] = b"hello"
print(open("a").readline(), open("b", "rb").read().strip(b"\0"))`)},
		{name: "Python RotatingFileHandler", needs: "python3", script: python(`
import logging, logging.handlers
h = logging.handlers.RotatingFileHandler("log", maxBytes=200, backupCount=2)
l = logging.getLogger(); l.addHandler(h); l.setLevel(logging.INFO)
for i in range(5): l.info("message %d", i)
logging.shutdown()`)},
		{name: "Python RotatingFileHandler, rolling over", needs: "python3", more: renames, script: python(`
import logging, logging.handlers
class Handler(logging.handlers.RotatingFileHandler):
    def doRollover(self): self.stream.flush(); keep(); super().doRollover(); keep()
h = Handler("log", maxBytes=200, backupCount=2)
l = logging.getLogger(); l.addHandler(h); l.setLevel(logging.INFO)
for i in range(30): l.info("message %d", i)
logging.shutdown()`)},
		{name: "Python dbm.dumb", needs: "python3", more: "the index is renamed to `.bak`, which a backup's name is not", script: python(`
import dbm.dumb
with dbm.dumb.open("d", "c") as d:
    keep()
    for k in "abc": d[k] = k; keep()
print(sorted(dbm.dumb.open("d", "r").keys()))`)},
	}
}

// officeTools are Python's packages that write tables.
func officeTools() []tool {
	return []tool{
		{name: "openpyxl", needs: "py:openpyxl", varies: `\.xlsx$`, script: python(`
import openpyxl
w = openpyxl.Workbook(); w.active.append(["id", "name"]); w.active.append([1, "n"]); w.save("a.xlsx")
keep()
w = openpyxl.load_workbook("a.xlsx"); w.active.append([2, "m"]); w.save("a.xlsx")
print([r for r in openpyxl.load_workbook("a.xlsx").active.values])`)},
		{name: "pandas CSV", needs: "py:pandas", script: python(`
import pandas as pd
d = pd.DataFrame({"id": range(1000), "name": ["n"] * 1000})
d.to_csv("a.csv", index=False); keep(); d.head(10).to_csv("a.csv", index=False); keep(); d.tail(2).to_csv("a.csv", mode="a", header=False, index=False)
print(len(pd.read_csv("a.csv")))`)},
		{name: "pandas Parquet", needs: "py:pandas", format: "parquet", script: python(`
import pandas as pd
d = pd.DataFrame({"id": range(1000), "name": ["n"] * 1000})
d.to_parquet("a.parquet", engine="pyarrow"); keep(); d.head(10).to_parquet("a.parquet", engine="pyarrow")
print(len(pd.read_parquet("a.parquet", engine="pyarrow")))`)},
		{name: "fastparquet, append", needs: "py:fastparquet", format: "parquet", script: python(`
import fastparquet, pandas as pd
d = pd.DataFrame({"id": range(1000), "x": [1.5] * 1000})
fastparquet.write("a.parquet", d); keep(); fastparquet.write("a.parquet", d, append=True)
print(len(fastparquet.ParquetFile("a.parquet").to_pandas()))`)},
	}
}

// readerTools are the engines that people query a lake with.
func readerTools() []tool {
	const duck = `
import duckdb, os
c = duckdb.connect(); c.execute("set threads=1"); c.execute("set preserve_insertion_order=true")
`
	return []tool{
		{name: "DuckDB COPY", needs: "py:duckdb", format: "parquet", script: python(duck + `
c.execute("copy (select range id, 'n' || range name from range(1000)) to 'a.parquet'")
print(c.execute("select count(*), sum(id) from 'a.parquet'").fetchall())
print(c.execute("select count(*), sum(id) from '" + os.environ["FOLDER"] + "/*.parquet'").fetchall())`)},
		{name: "DuckDB COPY over an old file", needs: "py:duckdb", format: "parquet", script: python(duck + `
for n in 1000, 10, 5000:
    keep(); c.execute(f"copy (select range id, 'n' name from range({n})) to 'a.parquet'")
    print(c.execute("select count(*) from '*.parquet'").fetchall())`)},
		{name: "DuckDB COPY, PARTITION_BY", needs: "py:duckdb", format: "parquet", keys: []string{"dt:date"}, script: python(duck + `
q = "(select range id, date '2026-01-01' + (range % 3)::int dt from range(900))"
c.execute(f"copy {q} to '.' (format parquet, partition_by (dt), overwrite_or_ignore)")
print(c.execute("select dt, count(*), sum(id) from read_parquet('*/*.parquet', hive_partitioning=true) group by dt order by dt").fetchall())
keep()
c.execute(f"copy {q} to '.' (format parquet, partition_by (dt), overwrite_or_ignore, filename_pattern 'x{{i}}')")
print(c.execute("select dt, count(*) from read_parquet('" + os.environ["FOLDER"] + "/*/*.parquet', hive_partitioning=true) group by dt order by dt").fetchall())`)},
		{name: "DuckDB COPY of CSV and JSON", needs: "py:duckdb", script: python(duck + `
c.execute("copy (select range id from range(100)) to 'a.csv' (header)"); c.execute("copy (select range id from range(100)) to 'a.csv.gz' (header)"); c.execute("copy (select range id from range(100)) to 'a.json'")
print(c.execute("select count(*) from 'a.csv'").fetchall(), c.execute("select count(*) from 'a.csv.gz'").fetchall(), c.execute("select count(*) from 'a.json'").fetchall())`)},
		{name: "DuckDB database file", needs: "py:duckdb", more: journal, heads: true, varies: `\.db$`, script: python(`
import duckdb
with duckdb.connect("q.db") as c: c.execute("create table t as select range a from range(1000)")
keep()
with duckdb.connect("q.db") as c: c.execute("insert into t values (5)"); c.execute("checkpoint")
with duckdb.connect("q.db", read_only=True) as c: print(c.execute("select count(*), sum(a) from t").fetchall())`)},
		{name: "pyarrow write, read, dataset", needs: "py:pyarrow", format: "parquet", script: python(`
import os, pyarrow as pa, pyarrow.parquet as pq, pyarrow.dataset as ds
t = pa.table({"id": range(1000), "name": ["n"] * 1000})
pq.write_table(t, "a.parquet"); keep(); pq.write_table(t.slice(0, 10), "a.parquet"); pq.write_table(t, "b.parquet", row_group_size=100)
print(pq.read_table("a.parquet").num_rows, pq.ParquetFile("b.parquet").num_row_groups, ds.dataset(".", format="parquet").count_rows(), ds.dataset(os.environ["FOLDER"], format="parquet").count_rows())
with pq.ParquetWriter("c.parquet", t.schema) as w:
    for i in range(3): w.write_table(t)
ds.write_dataset(t, "sub", format="parquet", existing_data_behavior="overwrite_or_ignore"); print(ds.dataset("sub").count_rows(), pq.read_table("c.parquet", memory_map=True).num_rows)`)},
		{name: "pyarrow dataset, partitioned", needs: "py:pyarrow", more: "`delete_matching` removes and writes anew", format: "parquet", keys: []string{"dt:date"}, script: python(`
import os, pyarrow as pa, pyarrow.dataset as ds
t = pa.table({"id": range(900), "dt": ["2026-01-%02d" % (1 + i % 3) for i in range(900)]})
part = ds.partitioning(pa.schema([("dt", pa.string())]), flavor="hive")
for how in "overwrite_or_ignore", "delete_matching":
    keep(); ds.write_dataset(t, ".", format="parquet", partitioning=part, existing_data_behavior=how)
    print(ds.dataset(".", format="parquet", partitioning=part).count_rows(), ds.dataset(os.environ["FOLDER"], format="parquet", partitioning=part).count_rows())`)},
		{name: "DuckDB reads what pyarrow wrote", needs: "py:duckdb py:pyarrow", format: "parquet", script: python(duck + `
import pyarrow as pa, pyarrow.parquet as pq
for i in range(3): pq.write_table(pa.table({"id": range(i * 100, i * 100 + 100)}), f"p{i}.parquet")
print(c.execute("select count(*), sum(id) from '*.parquet'").fetchall(), c.execute("select count(*), sum(id) from '" + os.environ["FOLDER"] + "/*.parquet'").fetchall())`)},
		{name: "polars write, read, scan, sink", needs: "py:polars", more: "it opens the file twice", format: "parquet", script: python(`
import os, polars as pl
d = pl.DataFrame({"id": range(1000), "name": ["n"] * 1000})
d.write_parquet("a.parquet"); keep(); d.head(10).write_parquet("a.parquet"); d.lazy().sink_parquet("b.parquet")
print(pl.read_parquet("a.parquet").height, pl.scan_parquet("*.parquet").select(pl.len()).collect().item(), pl.scan_parquet(os.environ["FOLDER"] + "/*.parquet").select(pl.len()).collect().item())`)},
		{name: "polars CSV, JSON, IPC", needs: "py:polars", more: "it opens the file twice, and leaves it empty the first time", between: ": > a.csv; : > a.json; : > a.arrow", script: python(`
import polars as pl
d = pl.DataFrame({"id": range(1000), "name": ["n"] * 1000})
d.write_csv("a.csv"); d.write_ndjson("a.json"); d.write_ipc("a.arrow")
print(pl.read_csv("a.csv").height, pl.read_ndjson("a.json").height, pl.read_ipc("a.arrow").height)`)},
	}
}

// programTools are programs in compiled and other languages.
func programTools() []tool {
	java := func(what string) string {
		return `java -XX:TieredStopAtLevel=1 -XX:-UsePerfData "$MODULE/internal/testing/tools/testdata/Writer.java" ` + what
	}
	return []tool{
		{name: "Go program", needs: "go", script: `go build -o "$OUT/writer" "$MODULE/internal/testing/tools/testdata/writer.go"; "$OUT/writer"; rm "$OUT/writer"; cat d`},
		{name: "go build -o", needs: "go", script: `go build -buildvcs=false -o writer "$MODULE/internal/testing/tools/testdata/writer.go"; test -x writer`, varies: `^writer$`},
		{name: "gcc, ar", needs: "gcc ar", more: "`ar` makes an empty archive first, and one of a random name", between: "printf '!<arch>\\n' > libf.a", script: `printf 'int f(void){return 7;}\n' > f.c; printf 'int f(void); int main(void){return f();}\n' > m.c; gcc -c f.c m.c; ar rcD libf.a f.o; gcc -o m m.o -L. -lf; ./m || echo $?`, random: `^(?:st|cc)(\w{6})`},
		{name: "Node program", needs: "node", more: "it copies within the lake, and removes", script: `node "$MODULE/internal/testing/tools/testdata/writer.js"`},
		{name: "Java Files.write", needs: "java", before: "seed a", script: java("write a")},
		{name: "Java Files.copy", needs: "java", more: "it removes the old file first", before: "seed b", script: java(`copy "$OUT/in.txt" a; `) + java(`copy "$OUT/in.txt" b`)},
		{name: "Java Files.move in", needs: "java", before: "seed b", script: java(`move "$OUT/in.txt" a`)},
		{name: "Java Files.createTempFile, move", needs: "java", before: "seed a", script: java("replace a"), random: `^part(\d+)\.tmp$`},
	}
}
