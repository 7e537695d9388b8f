package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/table"
)

const dropIt = "leave the column out with --columns"

// conform chooses the columns that are shown, and holds the file's to the table's (rule
// 38): they match by name, the file's others are read past, one that the file lacks is
// NULL unless it is NOT NULL, and a type other than the table's is an error that names
// both. Only columns that are shown are held to anything. Without a table the file's own
// columns are. Keys come last, and over columns of their names (rule 35).
func conform(s Spec, file []field) ([]output, error) {
	asked, err := chosen(s, offered(s, file))
	if err != nil {
		return nil, err
	}
	c := conformer{spec: s, file: file, byName: index(len(file), func(i int) string { return file[i].name })}
	outputs := make([]output, 0, len(asked))
	for _, a := range asked {
		o, err := c.output(a)
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, o)
	}
	return outputs, nil
}

// choice is a column that can be shown: the table's, or without a table the file's, or a key.
type choice struct {
	name   string
	column *Column
	key    *Key
	from   int // into the file's, without a table
}

// offered lists what can be shown, in order.
func offered(s Spec, file []field) []choice {
	keys := index(len(s.Keys), func(i int) string { return s.Keys[i].Name })
	var all []choice
	add := func(c choice) {
		if len(keys[strings.ToLower(c.name)]) == 0 {
			all = append(all, c)
		}
	}
	for i := range s.Columns {
		add(choice{name: s.Columns[i].Name, column: &s.Columns[i]})
	}
	if len(s.Columns) == 0 {
		for i, f := range file {
			add(choice{name: f.name, from: i})
		}
	}
	for i := range s.Keys {
		all = append(all, choice{name: s.Keys[i].Name, key: &s.Keys[i]})
	}
	return all
}

// chosen are those that are asked for, in the order they are asked for.
func chosen(s Spec, all []choice) ([]choice, error) {
	byName := index(len(all), func(i int) string { return all[i].name })
	asked := all
	if len(s.Project) > 0 {
		asked = make([]choice, 0, len(s.Project))
		for _, name := range s.Project {
			i, err := byName.find(name, func(i int) string { return all[i].name })
			if err != nil {
				return nil, err
			}
			if i < 0 {
				return nil, &Error{Column: name, Reason: "there is no such column", Remedy: "there are " + names(all)}
			}
			asked = append(asked, all[i])
		}
	}
	seen := make(map[string]int, len(asked)) // numbers from 1 on
	for i, a := range asked {
		switch before := seen[a.name]; {
		case before > 0 && len(s.Project) > 0:
			return nil, &Error{Column: a.name, Reason: "it is asked for twice"}
		case before > 0:
			return nil, &Error{Column: a.name, Reason: fmt.Sprintf("two columns have this name, number %d and number %d", before, i+1), Remedy: "name the others with --columns"}
		}
		seen[a.name] = i + 1
	}
	return asked, nil
}

// names lists the first of what can be shown.
func names(all []choice) string {
	const most = 20
	var b strings.Builder
	for i, c := range all {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(all)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.100q", c.name)
	}
	return b.String()
}

// nameIndex finds things by their names in lower case.
type nameIndex map[string][]int

func index(n int, name func(int) string) nameIndex {
	x := make(nameIndex, n)
	for i := range n {
		lower := strings.ToLower(name(i))
		x[lower] = append(x[lower], i)
	}
	return x
}

// find returns the one of the name, exactly or else without case; -1 if there is none. Two
// that are equal without case, or exactly, are an error.
func (x nameIndex) find(want string, name func(int) string) (int, error) {
	like := x[strings.ToLower(want)]
	exact := slices.DeleteFunc(slices.Clone(like), func(i int) bool { return name(i) != want })
	if len(exact) > 0 {
		like = exact
	}
	switch len(like) {
	case 0:
		return -1, nil
	case 1:
		return like[0], nil
	}
	reason := fmt.Sprintf("there are two of it: number %d is %.100q, number %d %.100q", like[0]+1, name(like[0]), like[1]+1, name(like[1]))
	return -1, &Error{Column: want, Reason: reason, Remedy: dropIt}
}

type conformer struct {
	spec   Spec
	file   []field
	byName nameIndex
}

func (c *conformer) output(a choice) (output, error) {
	switch {
	case a.key != nil:
		return output{name: a.name, from: -1, key: a.key}, nil
	case a.column == nil:
		f := c.file[a.from]
		if at, bad := unreadable(f.name, f.typ); bad != nil {
			return output{}, cannotShow(at, bad)
		}
		return output{name: a.name, from: a.from}, c.flat(a.name, f.typ.nested())
	}
	want, err := table.ParseType(a.column.Type)
	if err != nil {
		return output{}, &Error{Column: a.name, Reason: "in the table it has a " + err.Error(), Remedy: dropIt}
	}
	if err = c.flat(a.name, want.Nested()); err != nil {
		return output{}, err
	}
	from, err := c.byName.find(a.name, func(i int) string { return c.file[i].name })
	switch {
	case err != nil:
		return output{}, err
	case from < 0 && a.column.NotNull:
		return output{}, &Error{Column: a.name, Reason: "the file has no such column, and in the table it is NOT NULL", Remedy: dropIt}
	case from < 0:
		return output{name: a.name, from: -1}, nil
	}
	got := c.file[from].typ
	typ, err := match(a.name, want, got)
	if err != nil {
		return output{}, err
	}
	if typ == got {
		typ = nil
	}
	return output{name: a.name, from: from, typ: typ}, nil
}

// flat refuses a nested column where there is no place for one (rule 47).
func (c *conformer) flat(name string, nested bool) error {
	switch {
	case !nested:
	case c.spec.Flat:
		return &Error{Column: name, Reason: "it is nested, and nested columns of a manifest's table are not shown", Remedy: dropIt}
	case c.spec.Output == OutputCSV:
		return &Error{Column: name, Reason: "it is nested, which CSV has no form for", Remedy: "take JSON lines, or " + dropIt}
	}
	return nil
}

// nested says that the type's values are written as JSON in all outputs.
func (t *fileType) nested() bool {
	switch t.kind {
	case record, list, mapping:
		return true
	case union:
		return slices.ContainsFunc(t.fields, func(f field) bool { return f.typ.nested() })
	}
	return false
}

// unreadable finds the first type in t whose values are not shown.
func unreadable(path string, t *fileType) (string, *fileType) {
	if t.kind == unknown {
		return path, t
	}
	for i := range t.fields {
		if at, bad := unreadable(path+"."+partName(t, i), t.fields[i].typ); bad != nil {
			return at, bad
		}
	}
	return "", nil
}

func cannotShow(path string, t *fileType) error {
	return &Error{Column: path, Reason: t.why, Remedy: dropIt}
}

// partName names a part of a nested type, for messages.
func partName(t *fileType, i int) string {
	switch t.kind {
	case list:
		return "element"
	case mapping:
		return [...]string{"key", "value"}[i]
	case union:
		return fmt.Sprintf("branch%d", i)
	}
	return t.fields[i].name
}
