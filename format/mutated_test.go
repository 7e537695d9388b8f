package format

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mutated"
)

// endBytes are how many bytes at the beginning and at the end of a file no reader goes
// without: magics, the lengths of footer and postscript, sync markers.
func endBytes(format string) (first, last int) {
	switch format {
	case "parquet":
		return len(parquetMagic), parquetTail
	case "orc":
		return len(orcMagic), 1
	}
	return len(avroMagic), avroSync
}

// TestFormatRefusesMutated: of 5,000 damaged files none is taken of which either end is
// not as it was, or a part is missing; none makes the check panic. A footer of another
// file is a whole one; and the marker of an Avro file without rows is any. What readers
// make of those that are taken is asked where there are mounts.
func TestFormatRefusesMutated(t *testing.T) {
	whole := map[string][]byte{}
	files := mutated.Whole(t, "testdata")
	for _, f := range files {
		whole[f.Name] = f.Data
	}
	accepted := 0
	for i, f := range mutated.Of(files, 1, 5000) {
		err := checkBytes(f.Format, f.Name, f.Data)
		if bad := (*Error)(nil); err != nil && (!errors.As(err, &bad) || strings.Contains(bad.Reason, "panic")) {
			t.Errorf("%d, %s with %s: %v", i, f.Name, f.How, err)
		}
		if err != nil {
			continue
		}
		accepted++
		was := whole[f.Name]
		first, last := endBytes(f.Format)
		other := strings.HasPrefix(f.How, mutated.OtherEnd) || f.Name == "norows.avro"
		ends := !bytes.Equal(f.Data[:first], was[:first]) || !other && !bytes.Equal(f.Data[len(f.Data)-last:], was[len(was)-last:])
		cut := len(f.Data) < len(was) && bytes.HasPrefix(was, f.Data) && f.Format != "avro"
		if ends || cut {
			t.Errorf("%d, %s with %s: accepted", i, f.Name, f.How)
		}
	}
	if accepted > 2000 {
		t.Errorf("%d of 5000 damaged files are accepted, want those alone of which data is damaged, or names and numbers in the footer", accepted)
	}
}
