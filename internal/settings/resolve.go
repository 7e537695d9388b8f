package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Given are values as a user gave them, by setting name: the flags and mount
// options of one call. A List has several values; of another setting the last
// one counts.
type Given map[string][]string

// Resolved are the settings in force, and where each came from.
type Resolved struct {
	Values
	Sources map[string]Source // by setting name

	given Given
}

// Flags are the flags that give another run of the program what was given to
// this one, beside the same environment.
func (r Resolved) Flags() []string {
	var flags []string
	for s := range All() {
		for _, raw := range r.given[s.Name] {
			flags = append(flags, "--"+s.Name+"="+raw)
		}
	}
	return flags
}

// Resolve fills the values from what was given, the environment ("NAME=value"
// strings; only LAKEFS_MOUNT_ ones are looked at; ":" parts the values of a
// List), the settings file that these name, and the defaults, and checks them. The
// error names every setting that is wrong, where it was given, and what is wanted.
func Resolve(given Given, environ []string) (Resolved, error) {
	env, err := environment(environ)
	if err != nil {
		return Resolved{}, err
	}
	path, named := configPath(given, env)
	file, err := readFile(path)
	if err != nil {
		return Resolved{}, fmt.Errorf("%s %q: %w", named, path, err)
	}
	r := Resolved{Sources: map[string]Source{}, given: given}
	r.Secrets = file.secrets
	var problems []error
	for s := range All() {
		raws, source := s.pick(given, env, file.values)
		r.Sources[s.Name] = source
		for _, raw := range raws {
			if err := s.set(&r.Values, raw); err != nil {
				problems = append(problems, fmt.Errorf("%s %q: %w", s.where(source, file), Masked(raw, false), err))
			}
		}
	}
	problems = append(problems, r.check()...)
	return r, errors.Join(problems...)
}

// Where says, for people, where the value of a setting was given.
func (r Resolved) Where(name string) string {
	switch r.Sources[name] {
	case FromEnvironment:
		return Setting{Name: name}.Env()
	case FromFile:
		return r.Config + ": " + name
	}
	return "--" + name
}

// configPath is the settings file that was named, "" if none was, and where.
func configPath(given Given, env map[string]string) (path, named string) {
	if raws := given[configName]; len(raws) > 0 {
		return raws[len(raws)-1], "--" + configName
	}
	name := EnvPrefix + envName(configName)
	return env[name], name
}

// S3Settings are the names of the settings of S3 alone that came from one of the
// sources, in the order of the schema.
func (r Resolved) S3Settings(sources ...Source) []string {
	return r.from(sources, func(s Setting) bool { return s.S3 })
}

// GlueSettings are those of a Glue catalog alone.
func (r Resolved) GlueSettings(sources ...Source) []string {
	return r.from(sources, func(s Setting) bool { return s.Glue })
}

func (r Resolved) from(sources []Source, of func(Setting) bool) []string {
	var names []string
	for s := range All() {
		if of(s) && slices.Contains(sources, r.Sources[s.Name]) {
			names = append(names, s.Name)
		}
	}
	return names
}

func (s Setting) pick(given Given, env map[string]string, file Given) ([]string, Source) {
	if raws := given[s.Name]; len(raws) > 0 {
		if !s.List {
			raws = raws[len(raws)-1:]
		}
		return raws, FromFlag
	}
	if raw, found := env[s.Env()]; found {
		if s.List {
			return splitList(raw), FromEnvironment
		}
		return []string{raw}, FromEnvironment
	}
	if raws, said := file[s.Name]; said {
		return raws, FromFile
	}
	if s.Default == "" {
		return nil, FromDefault
	}
	return []string{s.Default}, FromDefault
}

// splitList parts the values of a List at ":", but not in the "scheme:/" of a URI.
func splitList(raw string) []string {
	var out []string
	for part := range strings.SplitSeq(raw, ":") {
		if n := len(out) - 1; n >= 0 && strings.HasPrefix(part, "/") && slices.Contains([]string{"s3", "s3a", "file"}, strings.ToLower(out[n])) {
			out[n] += ":" + part
			continue
		}
		out = append(out, part)
	}
	return out
}

func (s Setting) where(source Source, file fileValues) string {
	switch source {
	case FromEnvironment:
		return s.Env()
	case FromFile:
		return file.where(s.Name)
	}
	return "--" + s.Name
}

// check looks at what settings say together, and applies the umask.
func (r *Resolved) check() []error {
	var problems []error
	if r.AllowOther && slices.ContainsFunc(r.AllowLocation, func(l string) bool { return strings.Contains(l, "{user}") }) {
		problems = append(problems, errors.New("--allow-location with {user} cannot be used with --allow-other: all users of a mount share what it has read; give each user a mount, or name the directories"))
	}
	if r.SSEKMSKeyID != "" && !strings.HasPrefix(r.SSE, "aws:kms") {
		problems = append(problems, errors.New("--sse-kms-key-id needs --sse=aws:kms or --sse=aws:kms:dsse"))
	}
	if r.Sources["cache-size"] != FromDefault && r.CacheDir == "" {
		problems = append(problems, fmt.Errorf("%s needs --cache-dir: without one there is no cache on a disk", r.Where("cache-size")))
	}
	if r.NoSignRequest && r.Profile != "" {
		problems = append(problems, errors.New("--no-sign-request and --profile: requests without credentials need no profile; leave one of them out"))
	}
	r.FileMode &^= r.Umask
	r.DirMode &^= r.Umask
	return problems
}

// environment picks this program's variables; an unknown one is an error. An
// empty one counts as not set.
func environment(environ []string) (map[string]string, error) {
	known := map[string]bool{}
	for s := range All() {
		known[s.Env()] = true
	}
	env := map[string]string{}
	var problems []error
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case !strings.HasPrefix(name, EnvPrefix) || value == "":
		case known[name]:
			env[name] = value
		default:
			problems = append(problems, fmt.Errorf("environment variable %s is no setting%s", name, suggestVariable(name, keys(known))))
		}
	}
	return env, errors.Join(problems...)
}

// suggestVariable is Suggest by what follows the prefix, which all have: within
// half of that.
func suggestVariable(name string, known []string) string {
	nearest := Nearest(name, known)
	if 2*Distance(name, nearest) > len(name)-len(EnvPrefix) {
		return ""
	}
	return "; the nearest is " + nearest
}

func keys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func envName(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }
