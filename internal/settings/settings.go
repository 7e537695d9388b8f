// Package settings is the one schema of what a mount can be told: each setting
// has a name, a default, a meaning and a place in [Values], and is given as the
// flag --NAME, as the environment variable LAKEFS_MOUNT_NAME (upper-case, "-" as
// "_") or as the mount option NAME. Flags and options win over the environment,
// the environment over the default.
//
// Nothing unknown is ignored: a LAKEFS_MOUNT_ variable or an option that the
// schema does not have is an error that names the nearest one it has. Values
// are checked once, by [Resolve]; what it returns can be used as it is.
package settings

import (
	"iter"
	"log/slog"
	"time"
)

// EnvPrefix begins the name of each setting's environment variable.
const EnvPrefix = "LAKEFS_MOUNT_"

// Levels of Values.Write, in rising order.
const (
	WriteNone      = "none"
	WriteCreate    = "create"
	WriteOverwrite = "overwrite"
	WriteDelete    = "delete"
)

// Values of Values.CatalogWrites.
const (
	CatalogWritesNone       = "none"
	CatalogWritesPartitions = "partitions"
	CatalogWritesEntries    = "entries"
)

// Values are the settings in force. Sizes are in bytes.
type Values struct {
	ReadOnly           bool
	Write              string // WriteNone … WriteDelete
	CheckFormat        string // strict, warn or off
	OnKilled           string // stage or publish
	AllowLocation      []string
	AllowOther         bool
	UID, GID           *uint32 // nil: the daemon's
	FileMode, DirMode  uint32  // permission bits, Umask taken off already
	Umask              uint32
	StateDir           string        // "": chosen by source and mount point
	StagedKeep         time.Duration // 0: for ever
	StagedMax          int64         // 0: half of the free space
	MetadataTTL        time.Duration
	NegativeTTL        time.Duration
	MemoryLimit        int64  // 0: a quarter of the memory, at most 2 GiB
	CacheDir           string // absolute path; "": no disk cache
	CacheSize          int64  // 0: a tenth of the disk
	ManifestMaxBytes   int64
	ManifestMaxColumns int
	ManifestMaxKeys    int
	RenameLimit        int // objects
	PrefetchFiles      int // 0: none
	Daemon, NoWait     bool
	NoPassthrough      bool // the kernel is not offered local files
	LogLevel           slog.Level
	LogFormat          string // text or json
	MetricsAddr        string // HOST:PORT, or unix: and an absolute path; "": nobody is told
	Pprof              bool
	IOTimeout          time.Duration

	// Patterns of names, in the language of fs.ParsePatterns, which checks them; none:
	// there are no such names.
	TemporaryNames, LocalNames, BackupNames []string
	TemporaryLinger                         time.Duration

	// Of a lake in S3. "" is the SDK's own choice or the store's, where no other
	// meaning is named.
	Profile, Region     string
	EndpointURL         string // without a final "/"; "": AWS, or what its configuration says
	PathStyle           bool
	NoSignRequest       bool
	RequesterPays       bool
	SSE, SSEKMSKeyID    string
	StorageClass        string
	ExpectedBucketOwner string
	CABundle            string // absolute path
	Checksum            string // crc32c, crc64nvme, sha256, none
	PartSize            int64  // of an upload; 0: growing

	GlueEndpointURL string   // without a final "/"; "": AWS, or what its configuration says
	Databases       []string // patterns of path.Match; none: all
	Tables          []string // likewise
	Discover        bool
	CatalogWrites   string // CatalogWritesNone, CatalogWritesPartitions, CatalogWritesEntries
	DeregisterAfter time.Duration

	Config string // absolute path of the settings file; "": none
	// Secrets are the AWS profiles of the names that a catalog's entries may
	// give as sqe.secret: the settings file's.
	Secrets map[string]string
}

// Setting is one row of the schema.
type Setting struct {
	Name    string // as the flag has it, without "--"
	Type    string // of the value, for people; "" for a switch
	Default string // as a user would write it; "" where there is none
	Usage   string
	Example string // a value that it may have, where there is no default
	Group   string // heading under which it is shown; set by All
	List    bool   // may be given several times
	S3      bool   // has a meaning for a lake whose data is in S3 alone
	Glue    bool   // has a meaning for a Glue catalog alone

	set func(v *Values, raw string) error // for a List: called for each value, adds it
	get func(v *Values) any               // the value for JSON; nil: none was chosen
}

// Env is the name of the setting's environment variable.
func (s Setting) Env() string { return EnvPrefix + envName(s.Name) }

// Source says where the value of a setting came from.
type Source string

// The sources of a value, the weakest first.
const (
	FromDefault     Source = "default"
	FromFile        Source = "file"
	FromEnvironment Source = "environment"
	FromFlag        Source = "flag"
)

// FromOption is what a caller may say of FromFlag where it gave Resolve mount options.
const FromOption Source = "option"

// FromAWS is what a caller may say of FromDefault where the AWS configuration has the value.
const FromAWS Source = "aws"

// All yields the schema, in the order in which help shows it.
func All() iter.Seq[Setting] {
	return func(yield func(Setting) bool) {
		for _, s := range schema() {
			if !yield(s) {
				return
			}
		}
	}
}
