package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// secretsKey is the one key of a settings file that is no setting.
const secretsKey = "secrets"

// fileMax bounds a settings file, in bytes.
const fileMax = 1 << 20

// fileValues are what a settings file says: of each setting its values, and the
// line on which they begin.
type fileValues struct {
	path    string
	values  Given
	lines   map[string]int
	secrets map[string]string
}

func (f fileValues) where(name string) string {
	return fmt.Sprintf("%s:%d: %s:", f.path, f.lines[name], name)
}

// readFile reads the settings file at path; "" is one that says nothing.
func readFile(path string) (fileValues, error) {
	f := fileValues{path: path, values: Given{}, lines: map[string]int{}, secrets: map[string]string{}}
	if path == "" {
		return f, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return f, bare(err)
	}
	if len(raw) > fileMax {
		return f, fmt.Errorf("over %d bytes", fileMax)
	}
	root, err := parseYAML(raw)
	if err != nil {
		return f, err
	}
	if root == nil {
		return f, nil
	}
	return f, f.mapping(root)
}

// bare takes operation and path off an error, where the message says them.
func bare(err error) error {
	var pathErr *iofs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// parseYAML returns the one document; nil for an empty one.
func parseYAML(raw []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil //nolint:nilnil // nothing is said
	}
	if err != nil {
		return nil, err
	}
	if err = decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line %d: a second document; want one", max(second.Line, 1))
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil //nolint:nilnil // comments alone
	}
	return root, nil
}

// errorf is an error with file and line.
func (f fileValues) errorf(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", f.path, n.Line, fmt.Errorf(format, args...))
}

func (f fileValues) mapping(root *yaml.Node) error {
	if root.Kind != yaml.MappingNode {
		return f.errorf(root, "want settings as NAME: VALUE")
	}
	byName := map[string]Setting{}
	names := []string{secretsKey}
	for s := range All() {
		if s.Name != configName {
			byName[s.Name] = s
			names = append(names, s.Name)
		}
	}
	var problems []error
	for key, value := range pairs(root) {
		s, known := byName[key.Value]
		switch {
		case f.lines[key.Value] != 0:
			problems = append(problems, f.errorf(key, "%s is given twice, first on line %d", key.Value, f.lines[key.Value]))
		case key.Value == secretsKey:
			problems = append(problems, f.readSecrets(value))
		case !known:
			problems = append(problems, f.errorf(key, "no setting is named %q%s", key.Value, Suggest(key.Value, names)))
		default:
			problems = append(problems, f.setting(s, value))
		}
		f.lines[key.Value] = key.Line
	}
	return errors.Join(problems...)
}

// pairs yields the keys and values of a mapping, aliases followed.
func pairs(m *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(m.Content); i += 2 {
			if !yield(m.Content[i], resolved(m.Content[i+1])) {
				return
			}
		}
	}
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func (f fileValues) setting(s Setting, value *yaml.Node) error {
	items := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		if !s.List {
			return f.errorf(value, "%s: want one value, not a list", s.Name)
		}
		items = value.Content
		f.values[s.Name] = []string{} // said to be empty, if it is
	}
	for _, item := range items {
		item = resolved(item)
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" || item.Value == "" {
			return f.errorf(item, "%s: want a value", s.Name)
		}
		f.values[s.Name] = append(f.values[s.Name], item.Value)
	}
	return nil
}

// readSecrets takes NAME: PROFILE and NAME: {profile: PROFILE}. What else is there
// may be a secret itself: it is not repeated in an error.
func (f fileValues) readSecrets(value *yaml.Node) error {
	if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
		return nil
	}
	if value.Kind != yaml.MappingNode {
		return f.errorf(value, "secrets: want NAME: {profile: PROFILE}")
	}
	for key, entry := range pairs(value) {
		profile, err := f.profile(key, entry)
		if err != nil {
			return err
		}
		if _, twice := f.secrets[key.Value]; twice {
			return f.errorf(key, "secrets: %q is given twice", key.Value)
		}
		f.secrets[key.Value] = profile
	}
	return nil
}

func (f fileValues) profile(key, entry *yaml.Node) (string, error) {
	if key.Value == "" || strings.ContainsAny(key.Value, "@/") {
		return "", f.errorf(key, "secrets: the name %q is empty, or has @ or /", key.Value)
	}
	if entry.Kind == yaml.MappingNode {
		keys := slices.Collect(func(yield func(string) bool) {
			for k := range pairs(entry) {
				if !yield(k.Value) {
					return
				}
			}
		})
		if !slices.Equal(keys, []string{"profile"}) {
			return "", f.errorf(key, "secrets: %q: want profile: PROFILE and nothing else; keys are kept in the AWS configuration files", key.Value)
		}
		entry = resolved(entry.Content[1])
	}
	if entry.Kind != yaml.ScalarNode || entry.Tag == "!!null" || entry.Value == "" {
		return "", f.errorf(key, "secrets: %q: want the name of a profile", key.Value)
	}
	return entry.Value, nil
}
