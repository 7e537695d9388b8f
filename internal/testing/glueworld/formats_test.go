package glueworld_test

import (
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestEdge10_APartitionOfAnotherFormat: bytes copy out, status.json shows both
// formats, and each partition's entry is its own.
func TestEdge10_APartitionOfAnotherFormat(t *testing.T) {
	const avro = "Obj\x01\x00 no more than its beginning"
	lake := mounttest.Mount(t, mounttest.Options{Glue: &mounttest.Glue{Tables: []mounttest.GlueTable{{
		Table: mounttest.Table{Database: "db", Name: "t", Keys: []string{"dt"}},
		Partitions: []mounttest.GluePartition{
			{Values: []string{"1"}, Files: map[string]string{"data.parquet": mounttest.Parquet(t, 3)}},
			{Values: []string{"2"}, Format: "avro", Files: map[string]string{"data.avro": avro}},
		},
	}}}})
	if got := lake.MustSh("cp db/t/dt=2/data.avro $HOME/; cat $HOME/data.avro"); got != avro {
		t.Errorf("data.avro was copied out as %q", got)
	}
	const hive = "org.apache.hadoop.hive."
	for _, tt := range []struct{ filter, file, want string }{
		{".catalog.hasMultiFormatPartitions", "db/t/.lakefs/status.json", "true"},
		{".catalog.formats", "db/t/.lakefs/status.json", `{"` + hive + `ql.io.avro.AvroContainerInputFormat":1,"` + hive + `ql.io.parquet.MapredParquetInputFormat":1}`},
		{".Partition.StorageDescriptor.SerdeInfo.SerializationLibrary", "db/t/dt=1/.lakefs/entry.json", `"` + hive + `ql.io.parquet.serde.ParquetHiveSerDe"`},
		{".Partition.StorageDescriptor.SerdeInfo.SerializationLibrary", "db/t/dt=2/.lakefs/entry.json", `"` + hive + `serde2.avro.AvroSerDe"`},
	} {
		if got := lake.MustSh("jq -cS '" + tt.filter + "' " + tt.file); got != tt.want+"\n" {
			t.Errorf("%s of %s is %s, want %s", tt.filter, tt.file, got, tt.want)
		}
	}
}
