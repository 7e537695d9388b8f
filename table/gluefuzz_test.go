package table

import (
	"strings"
	"testing"
	"time"
)

func FuzzParseGlue(f *testing.F) {
	for _, folder := range fixtureFolders(f) {
		_, _, raw := fixture(f, folder)
		f.Add([]byte(raw))
	}
	f.Add(glueEntry(paimon("format-table.partition-path-only-value", "true")))
	f.Add(glueEntry(with(providerKey, "parquet", schemaKey, schemaOfAB, schemaKey+".numPartCols", "1", schemaKey+".partCol.0", "b")))
	f.Add([]byte(`{"TargetTable":{"DatabaseName":"a","Name":"b"}}`))
	f.Add([]byte(`{"StorageDescriptor":{"Location":[]},"Parameters":""}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		tab := ParseGlue("db", "t", raw)
		if tab.Database != "db" || tab.Name != "t" || tab.Kind == "" {
			t.Fatalf("got %+v", tab)
		}
		if tab.Writable && !tab.Readable || tab.Writable != (tab.Class == ClassNone) || tab.Writable != (tab.Reason == "") {
			t.Fatalf("a verdict without reason: %+v", tab)
		}
		if tab.Readable && (tab.Location == "" || placeholder(tab.Location)) {
			t.Fatalf("readable without location: %+v", tab)
		}
		if (tab.Kind == Link) != (tab.Target != nil) || (tab.Partitions == PartitionsProjected) != (tab.Projection != nil) {
			t.Fatalf("half a table: %+v", tab)
		}
		if len(tab.Keys) == 0 && tab.Partitions != PartitionsOnDisk || tab.Kind == Broken && !strings.HasPrefix(tab.Reason, "db.t: ") {
			t.Fatalf("got %+v", tab)
		}
		for _, name := range []string{"a=1", "1", "_temporary", string(raw[:min(20, len(raw))])} {
			_, _ = tab.Partition(name, 0)
			_ = tab.CheckNew(name, 0, nil)
			_, _ = tab.PartitionText(name, 0)
		}
	})
}

func FuzzParseGluePartition(f *testing.F) {
	for _, folder := range fixtureFolders(f) {
		for _, raw := range fixturePartitions(f, folder) {
			f.Add([]byte(raw))
		}
	}
	f.Add([]byte(`{"Values":["1"],"StorageDescriptor":"","CreationTime":1e9}`))
	f.Add([]byte(`{"Values":["1",2]}`))
	f.Add([]byte(`null`))
	tab := glueTable(keyed("dt", "string"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := tab.ParseGluePartition(raw)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "db.t: partition ") {
				t.Fatalf("an error without table: %v", err)
			}
			return
		}
		if len(p.Values) != 1 || (p.Format == "") != (p.FormatFrom == "") {
			t.Fatalf("got %+v", p)
		}
		if !p.Created.IsZero() && (p.Created.Before(time.Unix(0, 0)) || p.Created.Year() > 9999) {
			t.Fatalf("created %v", p.Created)
		}
		name := tab.PartitionName(p.Values[0], 0)
		if got, ok := tab.PartitionText(name, 0); !ok || got != p.Values[0] {
			t.Fatalf("name %q of %q: got %q, %t", name, p.Values[0], got, ok)
		}
	})
}
