package settings

import (
	"fmt"
	"strings"
)

// exampleWidth is where the comments of an example file are broken.
const exampleWidth = 90

const exampleHead = `# Settings of lakefs-mount: lakefs-mount mount --config FILE SOURCE MOUNTPOINT

# As it is this file changes nothing: each setting is commented out, with its default, or
# with an example where the default is no value of its own. A flag (--write=none) and a
# mount option (write=none) win over the environment (LAKEFS_MOUNT_WRITE=none), that over
# this file, and that over the default. A key that is not known is an error.
`

const exampleTail = `
# ---- Secrets ----

# Credentials of single tables: a table's entry names one (sqe.secret: partner), and here
# that name has a profile of the AWS configuration. No key is ever written into this file.
#secrets: {partner: {profile: partner-readonly}}
`

// ExampleFile is a settings file that says nothing: every setting, commented out, with
// its meaning, its default and what it may be. Without the "#" that a name follows, each
// line is one that a settings file may have.
func ExampleFile() string {
	var b strings.Builder
	b.WriteString(exampleHead)
	group := ""
	for s := range All() {
		if s.Name == configName {
			continue
		}
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n# ---- %s ----\n", group)
		}
		b.WriteString("\n")
		comment(&b, Sentence(s.Usage))
		comment(&b, s.Allowed())
		fmt.Fprintf(&b, "#%s: %s\n", s.Name, s.yamlValue())
	}
	b.WriteString(exampleTail)
	return b.String()
}

// Allowed says what the setting may be, and what it is by default.
func (s Setting) Allowed() string {
	form := s.Form()
	if s.List && s.Type != "LIST" {
		form += "; or a list of such"
	}
	if s.Default == "" {
		return "Value: " + form + "."
	}
	return "Value: " + form + ". Default: " + s.Default + "."
}

// yamlValue is the default, or the example, as YAML has it.
func (s Setting) yamlValue() string {
	value := s.Default
	if value == "" {
		value = s.Example
	}
	if choices := s.Choices(); value == "" && len(choices) > 0 {
		value = choices[0]
	}
	quoted := value
	if strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" && s.Type != "URL" || s.Type == "MODE" || s.Type == "ACCOUNT" {
		quoted = "'" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	if s.List && s.Type != "LIST" {
		return "[" + quoted + "]"
	}
	return quoted
}

// Sentence begins with a capital and ends with a full stop.
func Sentence(text string) string {
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// comment writes text in lines of "# ".
func comment(b *strings.Builder, text string) {
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > exampleWidth && line != "#" {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}
