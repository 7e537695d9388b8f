package mounttest

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/warehouse"
)

// folder is a warehouse in a local directory.
type folder struct{ root string }

func (f folder) path(name string) string { return filepath.Join(f.root, filepath.FromSlash(name)) }

func (f folder) read(name string) (string, error) {
	raw, err := os.ReadFile(f.path(name))
	return string(raw), err
}

func (f folder) names(dir string) ([]string, error) {
	entries, err := os.ReadDir(f.path(dir))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names, err
}

func (f folder) tree(dir string) (map[string]string, error) {
	files := make(map[string]string)
	root := f.path(dir)
	err := filepath.WalkDir(root, func(path string, d iofs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		files[filepath.ToSlash(name)] = string(raw)
		return err
	})
	return files, err
}

func (f folder) info(name string) (StoredFile, error) {
	info, err := os.Lstat(f.path(name))
	if err != nil {
		return StoredFile{}, err
	}
	tag := fmt.Sprintf("inode %d, %d bytes, %v", inode(info), info.Size(), info.ModTime())
	return StoredFile{Size: info.Size(), ModTime: info.ModTime(), ETag: tag}, nil
}

func (f folder) put(name, content string) error {
	path := f.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temp := fmt.Sprintf("%s.%d", path, time.Now().UnixNano())
	return errors.Join(os.WriteFile(temp, []byte(content), 0o644), os.Rename(temp, path)) //nolint:gosec // anybody reads a warehouse
}

func (f folder) remove(name string) error { return os.Remove(f.path(name)) }

func (f folder) seed(files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := warehouse.WriteFile(f.root, name, files[name]); err != nil {
			return err
		}
	}
	return nil
}

func inode(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
