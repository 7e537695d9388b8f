package table

import (
	"strings"
	"unicode/utf8"
)

const upperHex = "0123456789ABCDEF"

// Escape returns the directory spelling of a partition value, the Hive way:
// bytes 00-1F, 7F and " # % ' * / : = ? \ { [ ] ^ become %XX.
func Escape(value string) string {
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; escaped(c) {
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func escaped(c byte) bool {
	return c < 0x20 || c == 0x7f || strings.IndexByte(`"#%'*/:=?\{[]^`, c) >= 0
}

// Unescape returns the value of a directory's spelling. It is lenient: a "%"
// without two hex digits after it stands for itself. A result that is not UTF-8
// reads as Latin-1.
func Unescape(name string) string {
	if strings.IndexByte(name, '%') < 0 && utf8.ValidString(name) {
		return name
	}
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] == '%' && i+2 < len(name) {
			hi, lo := unhex(name[i+1]), unhex(name[i+2])
			if hi >= 0 && lo >= 0 {
				b = append(b, byte(hi<<4|lo))
				i += 2
				continue
			}
		}
		b = append(b, name[i])
	}
	if utf8.Valid(b) {
		return string(b)
	}
	return latin1(b)
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func latin1(b []byte) string {
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}

// Hidden says that a name below a table is not data: "_" or "." comes first.
// At a partition level ask [Table.HiddenAt].
func Hidden(name string) bool {
	return strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".")
}

// StagingTree says that a name is the top of a tree in which engines, and rsync,
// keep unfinished output; it opens by name and is never listed.
func StagingTree(name string) bool {
	return name == "_temporary" || name == ".~tmp~" || name == ".rsync-partial" ||
		strings.HasPrefix(name, "_temporary-") ||
		strings.HasPrefix(name, "__magic") ||
		strings.HasPrefix(name, ".hive-staging_") ||
		strings.HasPrefix(name, ".spark-staging-")
}

// HiddenAt is [Hidden] for a name whose parent lies level components below the
// table: a "_key=value" of that level's key and a value-only null name are
// partitions (rule 19).
func (t *Table) HiddenAt(name string, level int) bool {
	if !Hidden(name) {
		return false
	}
	if level >= len(t.Keys) {
		return true
	}
	if t.PathOnlyValue {
		return name != t.NullName && Unescape(name) != t.NullName
	}
	key, _, ok := strings.Cut(name, "=")
	return !ok || name[0] != '_' || !strings.EqualFold(Unescape(key), t.Keys[level].Name)
}

// metadata says that name, directly below the table, is the table's own (rule 21).
func (t *Table) metadata(name string, level int) bool {
	return t.MetadataUnderTable && level == 0 && (name == "schema" || name == "branch")
}

// IsMetadata says that the first of the components below a table leads into
// the table's own metadata (rule 21).
func (t *Table) IsMetadata(first string) bool { return t.metadata(first, 0) }
