// Writer writes files as Go programs do.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if err := os.WriteFile("a", []byte("one\n"), 0o644); err != nil {
		return err
	}
	if err := keep(); err != nil {
		return err
	}
	if err := os.WriteFile("a", []byte("two\n"), 0o600); err != nil {
		return err
	}
	for _, text := range []string{"old\n", strings.Repeat("new\n", 100_000)} {
		if err := errors.Join(replace("b", text), keep()); err != nil {
			return err
		}
	}
	if err := appendTo("c", "one\n", "two\n"); err != nil {
		return err
	}
	in, err := os.Open("b")
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll("sub/dir", 0o755); err != nil {
		return err
	}
	out, err := os.Create("sub/dir/copy")
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	if _, err := out.WriteAt([]byte("NEW"), 40); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	info, err := os.Stat("sub/dir/copy")
	if err != nil {
		return err
	}
	return os.WriteFile("d", fmt.Appendf(nil, "%d %v\n", info.Size(), info.Mode()), 0o644)
}

// replace writes beside name, syncs, and renames.
func replace(name, text string) error {
	f, err := os.Create(name + ".part")
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(name+".part", name)
}

func appendTo(name string, lines ...string) error {
	for _, line := range lines {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		if _, err := f.WriteString(line); err != nil {
			return err
		}
		if err := errors.Join(f.Close(), keep()); err != nil {
			return err
		}
	}
	return nil
}

// keep copies what is there for the test to know.
func keep() error {
	to := os.Getenv("VERSIONS")
	if to == "" {
		return nil
	}
	kept, err := os.ReadDir(to)
	if err != nil {
		return err
	}
	return os.CopyFS(fmt.Sprintf("%s/%06d", to, len(kept)), os.DirFS("."))
}
