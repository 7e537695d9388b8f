package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestSchemasOfGlueTables: each entry of the fixtures that is a table's has the schema
// that render's golden file says.
func TestSchemasOfGlueTables(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	read := 0
	for _, f := range l.Catalog.Server.LoadFixtures("../table/testdata/glue") {
		if f.Table == "" {
			continue
		}
		path := f.Database + "/" + f.Table + "/.lakefs/schema.sql"
		want, err := os.ReadFile(filepath.Join("../render/testdata/schema/glue", f.Folder+".sql"))
		switch {
		case err == nil:
			wantContent(t, l, path, string(want))
			read++
		case strings.Contains(f.Folder, "view-"), strings.HasPrefix(f.Table, "res"):
			wantErrno(t, f.Folder, openErr(l, path, syscall.O_RDONLY), syscall.ENOENT)
		case strings.Contains(f.Folder, "resource-link"): // to another account, or to what the account has
		default:
			wantErrno(t, f.Folder, openErr(l, path, syscall.O_RDONLY), syscall.EIO)
		}
	}
	if read < 20 {
		t.Errorf("%d schemas", read)
	}
	l.WaitLog("hand.broken_partcol")
}

// TestSchemaOfATable: it is listed, has its exact size, and changes with the entry.
func TestSchemaOfATable(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables(), Flags: []string{"--metadata-ttl=5m"}})
	const path = "sales/orders/.lakefs/schema.sql"
	got := l.MustSh("cat " + path)
	if !strings.Contains(got, "CREATE EXTERNAL TABLE `sales`.`orders` (\n") || !strings.Contains(got, "PARTITIONED BY") || !strings.HasSuffix(got, ";\n") {
		t.Errorf("the schema is %s", got)
	}
	if where := "LOCATION '" + l.MustSh("printf %s $(getfattr --only-values -n user.lakefs.location sales/orders)"); !strings.Contains(got, where) {
		t.Errorf("the schema lacks %s: %s", where, got)
	}
	if size := l.MustSh("stat -c %s " + path + "; wc -c <" + path); size != fmt.Sprintf("%d\n%[1]d\n", len(got)) {
		t.Errorf("it has %d bytes, and %q", len(got), size)
	}
	wantErrno(t, "open for writing", openErr(l, path, syscall.O_WRONLY), syscall.EPERM)
	for _, other := range []string{".lakefs", "sales/.lakefs", "sales/orders/dt=2026-01-01/.lakefs"} {
		wantErrno(t, other, statErr(l, other+"/schema.sql"), syscall.ENOENT)
	}
	manifest := l.StoredManifest("sales/orders")
	l.PutManifest("sales/orders", strings.Replace(manifest, `"bigint"`, `"decimal(3,1)"`, 1))
	if changed := l.MustSh("cat " + path); !strings.Contains(changed, "decimal(3,1),\n") {
		t.Errorf("of another type it is %s", changed)
	}
	l.PutManifest("sales/orders", strings.Replace(manifest, "LazySimpleSerDe", "OtherSerDe", 1))
	wantErrno(t, "of an unknown SerDe", openErr(l, path, syscall.O_RDONLY), syscall.EIO)
	l.WaitLog("OtherSerDe")
	l.MustSh("cat sales/orders/.lakefs/status.json sales/orders/dt=2026-01-01/*/* >/dev/null")
}
