package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// What a packaged build says of its source, set by the linker (-X) because it is built
// without git: tools/packages.sh. Empty in any other build, which asks the toolchain.
//
//nolint:gochecknoglobals // the linker sets nothing else
var (
	version  string // of the package
	revision string // of the source, in full
	revised  string // the revision's time, RFC 3339
)

// build says what this program was built from.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, with "+changed" where it had changes
	Time     string `json:"time,omitempty"`     // of the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Modules are the versions of those that it was linked with, by path.
	Modules map[string]string `json:"modules"`
}

func buildData() build {
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, found := debug.ReadBuildInfo()
	b.Modules = modulesOf(info)
	if version != "" {
		b.Version, b.Revision, b.Time = version, revision, revised
		return b
	}
	if !found {
		return b
	}
	b.Version = info.Main.Version
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	changed := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				changed = "+changed"
			}
		}
	}
	if b.Revision != "" {
		b.Revision += changed
	}
	return b
}

// modulesOf are the versions of what info, nil where nothing is known, was linked with.
func modulesOf(info *debug.BuildInfo) map[string]string {
	modules := map[string]string{}
	if info == nil {
		return modules
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules[m.Path] = m.Version
	}
	return modules
}

func (b build) String() string {
	s := "lakefs-mount " + b.Version
	if b.Revision != "" {
		s += fmt.Sprintf(" (%.12s, %s)", b.Revision, b.Time)
	}
	return s + ", " + b.Go + ", " + b.Platform
}

func (p *program) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show what this program was built from",
		Args:  arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			b := buildData()
			if !asJSON {
				p.printf("%s\n", b)
				return nil
			}
			return p.printJSON(b)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// printJSON writes v indented, without HTML escapes.
func (p *program) printJSON(v any) error {
	e := json.NewEncoder(p.stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}
