package table

import (
	"fmt"
	"iter"
	"strings"
)

// Value is what a partition directory's name says.
type Value struct {
	Text string // unescaped; the null name if Null
	Null bool
	// Same is equal for values that are equal by their key's type: 7 and 07 of
	// an int. Null has none.
	Same string
}

// Partition returns the value of an existing directory whose parent lies level
// components below the table. NULL reads as the table's null name. Errors:
// [ErrNotPartition] (an ordinary directory), [ErrValue] with the name in it.
func (t *Table) Partition(name string, level int) (string, error) {
	v, err := t.ParsePartition(name, level)
	return v.Text, err
}

// ParsePartition is [Table.Partition] with NULL told apart. Only integers and
// dates must parse (rule 45); other types fall back to text.
func (t *Table) ParsePartition(name string, level int) (Value, error) {
	text, ok := t.valueText(name, level)
	if !ok {
		return Value{}, fmt.Errorf("%q: %w", name, ErrNotPartition)
	}
	if text == t.NullName {
		return Value{Text: text, Null: true}, nil
	}
	key := t.Keys[level]
	s, err := t.parse(key.Type, text)
	if err != nil {
		if strict(key.Type) {
			return Value{}, fmt.Errorf("partition %q: key %s is %s: %w", name, key.Name, key.Type, ErrValue)
		}
		s = text
	}
	return Value{Text: text, Same: s}, nil
}

// valueText splits an existing name at its first raw "=". ok is false where it
// is no partition of that level.
func (t *Table) valueText(name string, level int) (text string, ok bool) {
	if level >= len(t.Keys) || t.HiddenAt(name, level) || t.metadata(name, level) {
		return "", false
	}
	if t.PathOnlyValue {
		return Unescape(name), true
	}
	key, value, ok := strings.Cut(name, "=")
	if !ok || !strings.EqualFold(Unescape(key), t.Keys[level].Name) {
		return "", false
	}
	return Unescape(value), true
}

// CheckNew says whether a directory of that name may be made where the parent
// lies level components below the table; existing are the names already in the
// parent (nil: none), read only as far as needed. Errors: [ErrName], [ErrEqual],
// [ErrMetadata]; the message names the right spelling where there is one.
func (t *Table) CheckNew(name string, level int, existing iter.Seq[string]) error {
	if err := plainName(name); err != nil {
		return err
	}
	if t.metadata(name, level) {
		return fmt.Errorf("%q: %w", name, ErrMetadata)
	}
	if level >= len(t.Keys) {
		return nil
	}
	if t.HiddenAt(name, level) {
		return t.checkHidden(name)
	}
	v, err := t.checkSpelling(name, level)
	if err != nil {
		return err
	}
	return t.checkEqual(name, level, v, existing)
}

func plainName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q: %w", name, ErrName)
	}
	return nil
}

// checkHidden: rule 20, a hidden value-only name would never be read back.
func (t *Table) checkHidden(name string) error {
	if !t.PathOnlyValue || StagingTree(name) {
		return nil
	}
	return fmt.Errorf("%q: a value-only partition must not begin with %q: %w", name, name[:1], ErrName)
}

// checkSpelling parses the name of a partition to be, strictly.
func (t *Table) checkSpelling(name string, level int) (Value, error) {
	key := t.Keys[level]
	raw := name
	if !t.PathOnlyValue {
		k, value, ok := strings.Cut(name, "=")
		if !ok || k == "" || value == "" || strings.Contains(value, "=") {
			return Value{}, fmt.Errorf("%q: want %s=VALUE, an %q within the value being %%3D: %w",
				name, Escape(key.Name), "=", ErrName)
		}
		if Unescape(k) != key.Name {
			return Value{}, fmt.Errorf("%q: the key of this level is %s: %w", name, Escape(key.Name), ErrName)
		}
		raw = value
	}
	text := Unescape(raw)
	v := Value{Text: text, Null: text == t.NullName}
	if !v.Null {
		var err error
		if v.Same, err = t.parse(key.Type, text); err != nil {
			return Value{}, fmt.Errorf("%q: key %s is %s: %w: %w", name, key.Name, key.Type, ErrName, err)
		}
	}
	if t.Kind == FormatTable {
		if want := t.canonical(key, v); name != want {
			return Value{}, fmt.Errorf("%q: this table spells it %q: %w", name, want, ErrName)
		}
	}
	return v, nil
}

// canonical is the one name that a format table gives to a value (rule 34).
func (t *Table) canonical(key Column, v Value) string {
	value := Escape(v.Text)
	if !v.Null {
		value = Escape(t.render(key.Type, v.Same))
	}
	if t.PathOnlyValue {
		return value
	}
	return Escape(key.Name) + "=" + value
}

func (t *Table) checkEqual(name string, level int, v Value, existing iter.Seq[string]) error {
	if existing == nil {
		return nil
	}
	for other := range existing {
		o, err := t.ParsePartition(other, level)
		if err != nil || o.Null != v.Null || o.Same != v.Same {
			continue
		}
		return fmt.Errorf("%q: equal to %q: %w", name, other, ErrEqual)
	}
	return nil
}
