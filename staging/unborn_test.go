package staging

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
)

// TestOpenDropsAWriteThatNeverBegan: a process that ended while it made a write
// over an older object leaves a spool that is a hole, and no record.
func TestOpenDropsAWriteThatNeverBegan(t *testing.T) {
	for _, tt := range []struct {
		name  string
		bytes string // at the end of the spool
		kept  bool
	}{
		{name: "a hole"},
		{name: "bytes", bytes: "x", kept: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newEnv(t)
			if err := e.area.Close(); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(e.dir, uuid.NewString())
			spool := filepath.Join(dir, dataName)
			err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(spool, nil, 0o600), os.Truncate(spool, 1<<20),
				os.WriteFile(filepath.Join(dir, blocksName), nil, 0o600))
			if err != nil {
				t.Fatal(err)
			}
			if tt.bytes != "" {
				f, openErr := os.OpenFile(spool, os.O_WRONLY|os.O_APPEND, 0)
				if openErr != nil {
					t.Fatal(openErr)
				}
				_, err = f.WriteString(tt.bytes)
				if err = errors.Join(err, f.Close()); err != nil {
					t.Fatal(err)
				}
			}
			e.open(t)
			_, err = os.Stat(dir)
			if kept := err == nil; kept != tt.kept || len(e.area.Files()) > 0 != tt.kept {
				t.Errorf("directory kept %v, %d writes found; want kept %v", kept, len(e.area.Files()), tt.kept)
			}
		})
	}
}
