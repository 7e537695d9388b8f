package tools_test

// python wraps a script for the interpreter of the tests.
func python(script string) string { return "python3 - <<'EOF'\n" + script + "\nEOF\n" }

// pythonTools are what Python's own library does to files.
func pythonTools() []tool {
	const temp = `^tmp(\w{8})`
	return []tool{
		{name: "Python open, write, append", needs: "python3", script: python(`
with open("a", "w") as f: f.write("one\n")
with open("a", "a") as f: f.write("two\n")
with open("a", "r+") as f: f.seek(4); f.write("TWO")
with open("b", "xb") as f: f.write(bytes(range(256)) * 1000)
try: open("b", "x")
except FileExistsError: print("exists")
with open("c", "w+") as f: f.write("abcdef"); f.seek(2); print(f.read(2)); f.truncate(3)
print(open("a").read(), open("c").read())`)},
		{name: "Python tempfile + os.replace", needs: "python3", random: temp, script: python(`
import os, tempfile
for text in "one\n", "two\n":
    fd, name = tempfile.mkstemp(dir=".")
    with os.fdopen(fd, "w") as f:
        f.write(text); f.flush(); os.fsync(f.fileno())
    os.replace(name, "a")
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
with tempfile.TemporaryDirectory(dir=".") as d:
    open(os.path.join(d, "x"), "w").write("x")
print(sorted(os.listdir(".")))`)},
		{name: "Python shutil.copy2, copytree, move", needs: "python3", mtime: true, script: python(`
import os, shutil
out = os.environ["OUT"]
shutil.copy2(out + "/in.txt", "a"); shutil.copy2("a", "b"); shutil.copytree(out + "/tree", "t"); shutil.move("t/one", "t/two"); shutil.move("b", out + "/b")
os.utime("t", (1, 1)); print(sorted(os.listdir("t")))`)},
		{name: "Python zipfile, append", needs: "python3", script: python(`
import zipfile
info = lambda n: zipfile.ZipInfo(n, (2024, 1, 1, 0, 0, 0))
with zipfile.ZipFile("z.zip", "w", zipfile.ZIP_DEFLATED) as z: z.writestr(info("a"), "a" * 10000)
with zipfile.ZipFile("z.zip", "a") as z: z.writestr(info("b"), "b" * 5)
print(zipfile.ZipFile("z.zip").namelist(), zipfile.ZipFile("z.zip").testzip())`)},
		{name: "Python fileinput, inplace", needs: "python3", script: `seed a; chmod 640 a` + "\n" + python(`
import fileinput
for line in fileinput.input("a", inplace=True): print(line.replace("line", "row"), end="")
for line in fileinput.input("a", inplace=True, backup=".old"): print(line.upper(), end="")`)},
		{name: "Python mmap", needs: "python3", script: `seed a` + "\n" + python(`
import mmap
with open("a", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    m[0:4] = b"LINE"; m.flush(); m[7:11] = b"LINE"
with open("b", "w+b") as f:
    f.truncate(10000)
    with mmap.mmap(f.fileno(), 0) as m: m[5000:5005] = b"hello"
print(open("a").readline(), open("b", "rb").read().strip(b"\0"))`)},
		{name: "Python logging, rotating", needs: "python3", script: python(`
import logging, logging.handlers
h = logging.handlers.RotatingFileHandler("log", maxBytes=200, backupCount=2)
l = logging.getLogger(); l.addHandler(h); l.setLevel(logging.INFO)
for i in range(30): l.info("message %d", i)
logging.shutdown()`)},
		{name: "Python dbm, shelve", needs: "python3", script: python(`
import dbm.dumb
with dbm.dumb.open("d", "c") as d: d["a"] = "1"; d["b"] = "2"
with dbm.dumb.open("d", "w") as d: del d["a"]; d["c"] = "3"
print(sorted(dbm.dumb.open("d", "r").keys()))`)},
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
    c.execute(f"copy (select range id, 'n' name from range({n})) to 'a.parquet'")
    print(c.execute("select count(*) from '*.parquet'").fetchall())`)},
		{name: "DuckDB COPY, PARTITION_BY", needs: "py:duckdb", format: "parquet", keys: []string{"dt:date"}, script: python(duck + `
q = "(select range id, date '2026-01-01' + (range % 3)::int dt from range(900))"
c.execute(f"copy {q} to '.' (format parquet, partition_by (dt), overwrite_or_ignore)")
print(c.execute("select dt, count(*), sum(id) from read_parquet('*/*.parquet', hive_partitioning=true) group by dt order by dt").fetchall())
c.execute(f"copy {q} to '.' (format parquet, partition_by (dt), overwrite_or_ignore, filename_pattern 'x{{i}}')")
print(c.execute("select dt, count(*) from read_parquet('" + os.environ["FOLDER"] + "/*/*.parquet', hive_partitioning=true) group by dt order by dt").fetchall())`)},
		{name: "DuckDB COPY of CSV and JSON", needs: "py:duckdb", script: python(duck + `
c.execute("copy (select range id from range(100)) to 'a.csv' (header)"); c.execute("copy (select range id from range(100)) to 'a.csv.gz' (header)"); c.execute("copy (select range id from range(100)) to 'a.json'")
print(c.execute("select count(*) from 'a.csv'").fetchall(), c.execute("select count(*) from 'a.csv.gz'").fetchall(), c.execute("select count(*) from 'a.json'").fetchall())`)},
		{name: "DuckDB database file", needs: "py:duckdb", varies: `\.db$`, script: python(`
import duckdb
with duckdb.connect("q.db") as c: c.execute("create table t as select range a from range(1000)")
with duckdb.connect("q.db") as c: c.execute("insert into t values (5)"); c.execute("checkpoint")
with duckdb.connect("q.db", read_only=True) as c: print(c.execute("select count(*), sum(a) from t").fetchall())`)},
		{name: "pyarrow write, read, dataset", needs: "py:pyarrow", format: "parquet", script: python(`
import os, pyarrow as pa, pyarrow.parquet as pq, pyarrow.dataset as ds
t = pa.table({"id": range(1000), "name": ["n"] * 1000})
pq.write_table(t, "a.parquet"); pq.write_table(t.slice(0, 10), "a.parquet"); pq.write_table(t, "b.parquet", row_group_size=100)
print(pq.read_table("a.parquet").num_rows, pq.ParquetFile("b.parquet").num_row_groups, ds.dataset(".", format="parquet").count_rows(), ds.dataset(os.environ["FOLDER"], format="parquet").count_rows())
with pq.ParquetWriter("c.parquet", t.schema) as w:
    for i in range(3): w.write_table(t)
ds.write_dataset(t, "sub", format="parquet", existing_data_behavior="overwrite_or_ignore"); print(ds.dataset("sub").count_rows(), pq.read_table("c.parquet", memory_map=True).num_rows)`)},
		{name: "pyarrow dataset, partitioned", needs: "py:pyarrow", format: "parquet", keys: []string{"dt:date"}, script: python(`
import os, pyarrow as pa, pyarrow.dataset as ds
t = pa.table({"id": range(900), "dt": ["2026-01-%02d" % (1 + i % 3) for i in range(900)]})
part = ds.partitioning(pa.schema([("dt", pa.string())]), flavor="hive")
for how in "overwrite_or_ignore", "delete_matching":
    ds.write_dataset(t, ".", format="parquet", partitioning=part, existing_data_behavior=how)
    print(ds.dataset(".", format="parquet", partitioning=part).count_rows(), ds.dataset(os.environ["FOLDER"], format="parquet", partitioning=part).count_rows())`)},
		{name: "DuckDB reads what pyarrow wrote", needs: "py:duckdb py:pyarrow", format: "parquet", script: python(duck + `
import pyarrow as pa, pyarrow.parquet as pq
for i in range(3): pq.write_table(pa.table({"id": range(i * 100, i * 100 + 100)}), f"p{i}.parquet")
print(c.execute("select count(*), sum(id) from '*.parquet'").fetchall(), c.execute("select count(*), sum(id) from '" + os.environ["FOLDER"] + "/*.parquet'").fetchall())`)},
		{name: "polars write, read, scan, sink", needs: "py:polars", format: "parquet", script: python(`
import os, polars as pl
d = pl.DataFrame({"id": range(1000), "name": ["n"] * 1000})
d.write_parquet("a.parquet"); d.head(10).write_parquet("a.parquet"); d.lazy().sink_parquet("b.parquet")
print(pl.read_parquet("a.parquet").height, pl.scan_parquet("*.parquet").select(pl.len()).collect().item(), pl.scan_parquet(os.environ["FOLDER"] + "/*.parquet").select(pl.len()).collect().item())`)},
		{name: "polars CSV, JSON, IPC", needs: "py:polars", script: python(`
import polars as pl
d = pl.DataFrame({"id": range(1000), "name": ["n"] * 1000})
d.write_csv("a.csv"); d.write_ndjson("a.json"); d.write_ipc("a.arrow")
print(pl.read_csv("a.csv").height, pl.read_ndjson("a.json").height, pl.read_ipc("a.arrow").height)`)},
	}
}

// programTools are programs in compiled and other languages.
func programTools() []tool {
	return []tool{
		{name: "Go program", needs: "go", script: `go build -o "$OUT/writer" "$MODULE/internal/testing/tools/testdata/writer.go"; "$OUT/writer"; rm "$OUT/writer"; cat d`},
		{name: "go build -o", needs: "go", script: `go build -buildvcs=false -o writer "$MODULE/internal/testing/tools/testdata/writer.go"; mkdir d; (cd d && ../writer); cat d/d`, varies: `^writer$`},
		{name: "gcc, ar", needs: "gcc ar", script: `printf 'int f(void){return 7;}\n' > f.c; printf 'int f(void); int main(void){return f();}\n' > m.c; gcc -c f.c m.c; ar rcD libf.a f.o; gcc -o m m.o -L. -lf; ./m || echo $?`, random: `^(?:st|cc)(\w{6})`},
		{name: "Node program", needs: "node", script: `node "$MODULE/internal/testing/tools/testdata/writer.js"`},
	}
}
