package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ParseOptions reads mount options ("ro,allow_other,uid=1000") as mount(8) and
// fstab give them. Each setting is one, with "-" or "_"; a switch needs no
// value; ro is read-only. What is for mount(8) itself, or says what holds
// anyhow, is passed over. "\," is a comma within a value.
func ParseOptions(list []string) (Given, error) {
	byName := map[string]Setting{}
	names := []string{"ro", "rw"}
	for s := range All() {
		byName[s.Name] = s
		names = append(names, s.Name)
	}
	given := Given{}
	var problems []error
	for _, option := range splitOptions(list) {
		name, value, hasValue := strings.Cut(option, "=")
		name = strings.ReplaceAll(name, "_", "-")
		if name == "ro" {
			name = "read-only"
		}
		s, known := byName[name]
		switch {
		case !known && ignored(option):
		case !known:
			problems = append(problems, fmt.Errorf("unknown mount option %q%s", option, Suggest(name, names)))
		case !hasValue && s.Type != "":
			problems = append(problems, fmt.Errorf("mount option %s needs a value: %s=%s", name, name, s.Type))
		default:
			if !hasValue {
				value = "true"
			}
			given[name] = append(given[name], value)
		}
	}
	return given, errors.Join(problems...)
}

func splitOptions(list []string) []string {
	var out []string
	for _, l := range list {
		l = strings.ReplaceAll(l, `\,`, "\x00")
		for o := range strings.SplitSeq(l, ",") {
			if o != "" {
				out = append(out, strings.ReplaceAll(o, "\x00", ","))
			}
		}
	}
	return out
}

// ignored: options of mount(8), of fstab's readers and of every FUSE mount, and
// those that say what holds for each of our mounts.
func ignored(option string) bool {
	name, _, _ := strings.Cut(option, "=")
	return strings.HasPrefix(name, "x-") || strings.HasPrefix(name, "X-") || slices.Contains([]string{
		"async", "atime", "auto", "comment", "default_permissions", "defaults", "dev", "diratime", "dirsync", "exec", "fsname", "group",
		"iversion", "lazytime", "loud", "mand", "noatime", "noauto", "nodev", "nodiratime", "noexec", "nofail", "noiversion", "nolazytime",
		"nomand", "norelatime", "nostrictatime", "nosuid", "nouser", "owner", "relatime", "rw", "silent", "strictatime", "subtype", "suid",
		"sync", "user", "users", "_netdev",
	}, name)
}

// Suggest is "; the nearest is X" where a candidate is near enough to be what
// was meant: within a third of name's length. Else it is "".
func Suggest(name string, candidates []string) string {
	nearest := Nearest(name, candidates)
	if nearest == "" || 3*Distance(name, nearest) > len(name) {
		return ""
	}
	return "; the nearest is " + nearest
}

// Nearest is the candidate with the least edit distance to name; of several,
// the first.
func Nearest(name string, candidates []string) string {
	best, least := "", -1
	for _, c := range candidates {
		if d := Distance(name, c); least < 0 || d < least {
			best, least = c, d
		}
	}
	return best
}

// Distance is the edit distance (Levenshtein) of a and b, over bytes.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
