package catalogview_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/catalogview/sourcetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// glueOn is a Source of a catalog.
func glueOn(t *testing.T, url string, change ...func(*catalogview.GlueOptions)) *catalogview.Glue {
	t.Helper()
	o := catalogview.GlueOptions{
		Config:   aws.Config{Credentials: credentials.NewStaticCredentialsProvider("access", "secret", "")},
		Endpoint: url,
		Timeout:  20 * time.Second,
	}
	for _, c := range change {
		c(&o)
	}
	g := catalogview.NewGlue(o)
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

const parquetDescriptor = `"InputFormat":"org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
"OutputFormat":"org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
"SerdeInfo":{"SerializationLibrary":"org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"}`

// parquetTable is the entry of a Parquet table.
func parquetTable(t *testing.T, name, location string, keys ...table.Column) string {
	t.Helper()
	list := []map[string]string{}
	for _, k := range keys {
		list = append(list, map[string]string{"Name": k.Name, "Type": k.Type})
	}
	columns, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"Name":%q,"CreateTime":1.795981949E9,"PartitionKeys":%s,"TableType":"EXTERNAL_TABLE",
"StorageDescriptor":{"Columns":[{"Name":"id","Type":"bigint"}],"Location":%q,%s}}`, name, columns, location, parquetDescriptor)
}

func parquetPartition(t *testing.T, values []string, location string) string {
	t.Helper()
	list, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"Values":%s,"CreationTime":1795981949,"StorageDescriptor":{"Columns":[{"Name":"id","Type":"bigint"}],"Location":%q,%s}}`,
		list, location, parquetDescriptor)
}

// gluetestHarness is a catalog of gluetest's for the suite.
func gluetestHarness(t *testing.T) sourcetest.Harness {
	t.Helper()
	server := gluetest.New(t)
	there := map[string]bool{}
	return sourcetest.Harness{
		Source: glueOn(t, server.URL),
		Create: func(t *testing.T, db string) {
			t.Helper()
			server.AddDatabase(db)
		},
		Put: func(t *testing.T, tab sourcetest.Table) {
			t.Helper()
			keys := tab.Keys
			if keys == nil {
				keys = []table.Column{{Name: "day", Type: "int"}}
			}
			entry := parquetTable(t, tab.Name, tab.Location, keys...)
			if tab.Broken {
				entry = fmt.Sprintf(`{"Name":%q,"PartitionKeys":[],"StorageDescriptor":{}}`, tab.Name)
			}
			if id := tab.Database + "/" + tab.Name; there[id] {
				server.SetTable(tab.Database, entry)
			} else {
				server.AddTable(tab.Database, entry)
				there[id] = true
			}
		},
		Drop: func(t *testing.T, db, name string) {
			t.Helper()
			server.Remove(db, name)
		},
		PutPartition: func(t *testing.T, db, name string, values []string, location string) {
			t.Helper()
			server.AddPartition(db, name, parquetPartition(t, values, location))
		},
	}
}

func TestGlueIsASource(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, gluetestHarness)
}
