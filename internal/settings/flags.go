package settings

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// AddFlags adds a flag for each setting, or for those named alone. [FromFlags]
// reads them.
func AddFlags(fs *pflag.FlagSet, names ...string) {
	for s := range All() {
		if len(names) > 0 && !slices.Contains(names, s.Name) {
			continue
		}
		f := fs.VarPF(&flagValue{setting: s, text: s.Default}, s.Name, "", s.Usage)
		if s.Type == "" {
			f.NoOptDefVal = "true"
		}
	}
}

// FromFlags are the settings whose flags were given.
func FromFlags(fs *pflag.FlagSet) Given {
	given := Given{}
	fs.Visit(func(f *pflag.Flag) {
		if v, ours := f.Value.(*flagValue); ours {
			given[f.Name] = v.raws
		}
	})
	return given
}

// flagValue keeps what was given; Resolve checks it. It is checked here too, so
// that the flag parser's error names the flag.
type flagValue struct {
	setting Setting
	text    string
	raws    []string
}

var _ pflag.Value = (*flagValue)(nil)

func (f *flagValue) String() string {
	if f.setting.List && len(f.raws) > 0 {
		return strings.Join(f.raws, ",")
	}
	return f.text
}

func (f *flagValue) Set(raw string) error {
	if err := f.setting.set(&Values{}, raw); err != nil {
		return err
	}
	f.text = raw
	f.raws = append(f.raws, raw)
	return nil
}

// Type is what help shows for the value; "bool" shows nothing.
func (f *flagValue) Type() string {
	if f.setting.Type == "" {
		return "bool"
	}
	return f.setting.Type
}
