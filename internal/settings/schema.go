package settings

import (
	"log/slog"
	"strings"
	"time"
)

func schema() []Setting {
	var all []Setting
	for _, group := range []struct {
		name     string
		settings []Setting
	}{
		{"What may be read and changed", access()},
		{"Owners and permissions", ownership()},
		{"Unpublished files", staged()},
		{"Names that are no data", names()},
		{"Limits", limits()},
		{"The catalog", catalog()},
		{"The object store", remote()},
		{"The process", running()},
	} {
		for _, s := range group.settings {
			s.Group = group.name
			all = append(all, s)
		}
	}
	return all
}

// access: what may be read and changed.
func access() []Setting {
	return []Setting{
		toggle("read-only", "refuse every change (EROFS)",
			func(v *Values) *bool { return &v.ReadOnly }),
		choice("write", "what may be changed: none; create (new names, and what this mount made); overwrite (also replace and rename others' files); delete (also remove them)",
			WriteOverwrite, []string{WriteNone, WriteCreate, WriteOverwrite, WriteDelete},
			func(v *Values) *string { return &v.Write }),
		choice("check-format", "a file that is not of its partition's format: strict refuses to publish it, warn logs it, off does not look",
			"strict", []string{"strict", "warn", "off"}, func(v *Values) *string { return &v.CheckFormat }),
		choice("on-killed", "a file whose writer is killed by a signal: stage keeps it unpublished, publish publishes what there is",
			"stage", []string{"stage", "publish"}, func(v *Values) *string { return &v.OnKilled }),
		{
			Name: "allow-location", Type: "LOCATION", List: true, Example: "s3://partner-data/exports/",
			Usage: "also serve tables whose location is in this directory, or under this s3://BUCKET/PREFIX, of a Glue catalog only such; {user} is the user that runs the mount (may be repeated)",
			set:   func(v *Values, raw string) error { return addLocation(v, raw) },
			get:   func(v *Values) any { return list(v.AllowLocation) },
		},
	}
}

// ownership: whom the files belong to, and who sees them.
func ownership() []Setting {
	return []Setting{
		toggle("allow-other", "let other users use the mount, as far as owners and modes allow",
			func(v *Values) *bool { return &v.AllowOther }),
		id("uid", "owner of what the lake does not say the owner of (default: the user that mounts)",
			func(v *Values) **uint32 { return &v.UID }),
		id("gid", "group of what the lake does not say the group of (default: the group that mounts)",
			func(v *Values) **uint32 { return &v.GID }),
		mode("file-mode", "permissions of files", "0600", func(v *Values) *uint32 { return &v.FileMode }),
		mode("dir-mode", "permissions of directories", "0700", func(v *Values) *uint32 { return &v.DirMode }),
		mode("umask", "permissions taken off from --file-mode and --dir-mode", "000", func(v *Values) *uint32 { return &v.Umask }),
	}
}

// staged: where unpublished files are kept, and how long.
func staged() []Setting {
	return []Setting{
		{
			Name: "state-dir", Type: "DIR", Example: "/var/lib/lakefs-mount",
			Usage: "staged files and remembered attributes (default: by source and mount point below $XDG_STATE_HOME or ~/.local/state)",
			set:   func(v *Values, raw string) error { v.StateDir = raw; return nil },
			get:   func(v *Values) any { return orNone(v.StateDir) },
		},
		duration("staged-keep", "how long staged files that were not published are kept (0: for ever)", "7d",
			func(v *Values) *time.Duration { return &v.StagedKeep }),
		size("staged-max", "how many bytes of them are kept (default: half of the free space)", "",
			func(v *Values) *int64 { return &v.StagedMax }),
	}
}

// limits: on time, memory and manifests.
func limits() []Setting {
	return []Setting{
		duration("metadata-ttl", "how long listings, entries and attributes are trusted", "5s",
			func(v *Values) *time.Duration { return &v.MetadataTTL }),
		duration("negative-ttl", "how long it is trusted that a name is not there", "1s",
			func(v *Values) *time.Duration { return &v.NegativeTTL }),
		timeout("io-timeout", "how long a store, a request or the next byte of an answer may take before it is an error", "60s",
			func(v *Values) *time.Duration { return &v.IOTimeout }),
		sizeFrom(16<<20, "memory-limit", "memory for cached and staged data, from 16MiB on (default: a quarter of the memory, at most 2GiB)", "",
			func(v *Values) *int64 { return &v.MemoryLimit }),
		size("manifest-max-bytes", "largest manifest that is loaded", "1MiB",
			func(v *Values) *int64 { return &v.ManifestMaxBytes }),
		count("manifest-max-columns", "most columns of a manifest", "4096",
			func(v *Values) *int { return &v.ManifestMaxColumns }),
		count("manifest-max-keys", "most partition keys of a manifest", "32",
			func(v *Values) *int { return &v.ManifestMaxKeys }),
		countFrom0("prefetch-files", "most files of a directory in a bucket that are fetched ahead of who opens its files in order (0: none)", "32",
			func(v *Values) *int { return &v.PrefetchFiles }),
		count("rename-limit", "most objects of a directory that is renamed in a bucket, one by one; above, rename says EXDEV", "1000",
			func(v *Values) *int { return &v.RenameLimit }),
	}
}

// configName is the setting that names the settings file.
const configName = "config"

// running: the process itself.
func running() []Setting {
	return []Setting{
		{
			Name: configName, Type: "FILE", Usage: "settings file: YAML, NAME: VALUE",
			Example: "/etc/lakefs-mount/lake.yaml",
			set:     func(v *Values, raw string) error { return setFile(&v.Config, raw) },
			get:     func(v *Values) any { return orNone(v.Config) },
		},
		toggle("daemon", "go to the background when the mount is ready", func(v *Values) *bool { return &v.Daemon }),
		toggle("no-passthrough", "read local files through the mount's own cache, not by the kernel alone (root, Linux 6.9)",
			func(v *Values) *bool { return &v.NoPassthrough }),
		toggle("no-wait", "do not wait for the catalog's first answer", func(v *Values) *bool { return &v.NoWait }),
		{
			Name: "log-level", Type: "debug|info|warn|error", Default: "info", Usage: "the least important messages that are logged",
			set: func(v *Values, raw string) error { return setLevel(&v.LogLevel, raw) },
			get: func(v *Values) any { return strings.ToLower(v.LogLevel.String()) },
		},
		choice("log-format", "form of the log", "text", []string{"text", "json"}, func(v *Values) *string { return &v.LogFormat }),
		{
			Name: "metrics-addr", Type: "ADDRESS", Example: ":9105",
			Usage: "serve metrics (/metrics, for Prometheus) and health (/healthz) at HOST:PORT, at :PORT of this machine alone, or at a socket, unix:PATH (default: nowhere)",
			set:   func(v *Values, raw string) error { return setAddress(&v.MetricsAddr, raw) },
			get:   func(v *Values) any { return orNone(v.MetricsAddr) },
		},
		toggle("pprof", "serve profiles of the process at the socket pprof.sock in the state directory", func(v *Values) *bool { return &v.Pprof }),
	}
}

func setLevel(level *slog.Level, raw string) error {
	switch raw {
	case "debug", "info", "warn", "error":
		return level.UnmarshalText([]byte(raw))
	}
	return notOneOf([]string{"debug", "info", "warn", "error"})
}
