package main

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

const completionLong = `Prints what makes a shell complete commands, flags, their values, mount points and
files.

    bash   source <(lakefs-mount completion bash)             needs bash-completion
           lakefs-mount completion bash > /usr/share/bash-completion/completions/lakefs-mount
    zsh    lakefs-mount completion zsh > "${fpath[1]}/_lakefs-mount"
    fish   lakefs-mount completion fish > ~/.config/fish/completions/lakefs-mount.fish`

// shells are those whose completion is generated.
func shells() []string { return []string{"bash", "zsh", "fish"} }

func (p *program) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "completion [flags] bash|zsh|fish",
		Short:     "Print what makes a shell complete commands and values",
		Long:      completionLong,
		Args:      arguments(1, 1),
		ValidArgs: shells(),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(p.stdout, true)
			case "zsh":
				return root.GenZshCompletion(p.stdout)
			case "fish":
				return root.GenFishCompletion(p.stdout, true)
			}
			return usagef("no completion for the shell %q%s; want one of %s", args[0], settings.Suggest(args[0], shells()), strings.Join(shells(), ", "))
		},
	}
}

// addSettings adds a flag for each setting, or for those named alone, and completes
// their values.
func (p *program) addSettings(cmd *cobra.Command, names ...string) {
	settings.AddFlags(cmd.Flags(), names...)
	for s := range settings.All() {
		if cmd.Flags().Lookup(s.Name) == nil {
			continue
		}
		_ = cmd.RegisterFlagCompletionFunc(s.Name, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return p.completeValue(s)
		}) // the flag is there
	}
}

// completeValue are the values of a setting, or of which kind they are.
func (p *program) completeValue(s settings.Setting) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case s.Choices() != nil:
		return s.Choices(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	case s.Name == "config":
		return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	case s.Type == "FILE":
		return nil, cobra.ShellCompDirectiveDefault
	case s.Type == "DIR", s.Type == "LOCATION":
		return nil, cobra.ShellCompDirectiveFilterDirs
	case s.Name == "profile":
		return p.profiles(), cobra.ShellCompDirectiveNoFileComp
	case s.Default != "":
		return []cobra.Completion{s.Default}, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// profiles are the names of the AWS configuration files' profiles.
func (p *program) profiles() []string {
	var names []string
	for variable, file := range map[string]string{"AWS_CONFIG_FILE": "config", "AWS_SHARED_CREDENTIALS_FILE": "credentials"} {
		path := p.getenv(variable)
		if path == "" {
			path = filepath.Join(p.getenv("HOME"), ".aws", file)
		}
		f, err := os.Open(path)
		if err != nil {
			continue // a shell has no place for it
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			head, _, found := strings.Cut(strings.TrimSpace(lines.Text()), "]")
			if name, ok := strings.CutPrefix(head, "["); ok && found && !strings.HasPrefix(name, "sso-session ") && !strings.HasPrefix(name, "services ") {
				names = append(names, strings.TrimSpace(strings.TrimPrefix(name, "profile ")))
			}
		}
		_ = f.Close() // only read
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// completeMount completes SOURCE MOUNTPOINT.
func completeMount(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return completeSource(typed)
	case 1:
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeSource completes SOURCE: what one of a service begins with, and directories.
func completeSource(typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	words := []cobra.Completion{glueScheme + ":", "s3://"}
	at, begun := filepath.Split(typed)
	entries, _ := os.ReadDir(filepath.Clean(at)) // a shell has no place for an error
	for _, e := range entries {
		if isDirectory(at+e.Name()) && isPlain(e.Name()) && (!strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(begun, ".")) {
			words = append(words, at+e.Name()+"/")
		}
	}
	words = slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, typed) })
	if len(words) == 0 { // commands may be completed beside it: behind them is a space
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return words, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// isPlain tells whether a shell can be given a name as a line, and show it.
func isPlain(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) && utf8.ValidString(name)
}

// completeMountPoint completes where something of this program is mounted.
func completeMountPoint(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	table, err := mountTable()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []cobra.Completion
	for _, e := range table {
		if e.ours() && isPlain(e.path) {
			words = append(words, cobra.CompletionWithDesc(e.path, quoted(e.source)))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeOptions completes the last of the mount options that were typed.
func (p *program) completeOptions(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	name, _, hasValue := strings.Cut(typed[len(before):], "=")
	var words []cobra.Completion
	for s := range settings.All() {
		switch {
		case hasValue && s.Name == strings.ReplaceAll(name, "_", "-"):
			for _, choice := range s.Choices() {
				words = append(words, before+name+"="+choice)
			}
		case !hasValue && s.Type == "":
			words = append(words, cobra.CompletionWithDesc(before+s.Name, s.Usage))
		case !hasValue:
			words = append(words, cobra.CompletionWithDesc(before+s.Name+"=", s.Usage))
		}
	}
	return words, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}
