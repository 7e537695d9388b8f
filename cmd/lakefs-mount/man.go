package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

const manLong = `Prints the manual page of a command, of lakefs-mount itself, of the settings file
(lakefs-mount.yaml) or of mount.lakefs-mount, in the form that man(1) shows:

    lakefs-mount man mount | man -l -

With --dir it writes all of them into the directories man1, man5 and man8 of DIR, as
in /usr/local/share/man.`

// The pages beside those of the commands, and their sections of the manual.
const (
	settingsPage = "lakefs-mount.yaml"
	helperPage   = "mount.lakefs-mount"
	manCommands  = "1"
	manFiles     = "5"
	manAdmin     = "8"
)

// page is a manual page.
type page struct{ name, section, text string }

func (p *program) manCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man [flags] [COMMAND]",
		Short: "Print a manual page, or write all of them",
		Long:  manLong,
		Args:  arguments(0, 1),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write all pages below this `DIR`")
	_ = cmd.MarkFlagDirname("dir") // the flag is there
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return manNames(cmd.Root()), cobra.ShellCompDirectiveNoFileComp
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pages := manPages(cmd.Root())
		switch {
		case dir != "" && len(args) > 0:
			return usagef("--dir writes all pages: leave out %q", args[0])
		case dir != "":
			return writePages(dir, pages)
		case len(args) == 0:
			args = []string{"lakefs-mount"}
		}
		for _, page := range pages {
			if page.name == args[0] || page.name == "lakefs-mount-"+args[0] {
				_, err := io.WriteString(p.stdout, page.text)
				if err != nil {
					return fmt.Errorf("write the page: %w", err)
				}
				return nil
			}
		}
		return usagef("no page is named %q%s", args[0], settings.Suggest(args[0], manNames(cmd.Root())))
	}
	return cmd
}

// manNames are what man takes.
func manNames(root *cobra.Command) []string {
	return append(slices.DeleteFunc(commandNames(root), func(n string) bool { return n == "help" }), "lakefs-mount", settingsPage, helperPage)
}

// writePages writes each page into the directory of its section.
func writePages(dir string, pages []page) error {
	for _, page := range pages {
		in := filepath.Join(dir, "man"+page.section)
		err := os.MkdirAll(in, 0o755) //nolint:gosec // manual pages are for all
		if err == nil {
			err = os.WriteFile(filepath.Join(in, page.name+"."+page.section), []byte(page.text), 0o644) //nolint:gosec // likewise
		}
		if err != nil {
			return fmt.Errorf("manual page %s in %q: %w", page.name, dir, bare(err))
		}
	}
	return nil
}

// manPages are all pages, the program's first.
func manPages(root *cobra.Command) []page {
	pages := []page{programPage(root)}
	for _, c := range root.Commands() {
		if !c.Hidden && c.Name() != "help" {
			pages = append(pages, commandPage(c))
		}
	}
	return append(pages, filePage(), mountHelperPage())
}

// manDate is the day of the source that the program was built from, so that a build
// that is made again has the same pages; "" where it is not known.
func manDate() string {
	day, _, _ := strings.Cut(buildData().Time, "T")
	return day
}

func programPage(root *cobra.Command) page {
	var r roff
	r.title("lakefs-mount", manCommands, manDate(), "User Commands")
	r.section("NAME")
	r.line("lakefs-mount - " + lowerFirst(root.Short))
	r.section("SYNOPSIS")
	r.item("lakefs-mount ", "COMMAND …")
	r.item("lakefs-mount ", "SOURCE MOUNTPOINT [-o OPTIONS]")
	r.section("DESCRIPTION")
	r.text(root.Long)
	r.section("COMMANDS")
	for _, c := range root.Commands() {
		if c.Hidden || c.Name() == "help" {
			continue
		}
		r.item(c.UseLine(), "")
		r.line(c.Short + ". See lakefs-mount-" + c.Name() + "(1).")
	}
	r.options(root)
	r.section("EXIT STATUS")
	r.item("0", "")
	r.line("It is done.")
	r.item("1", "")
	r.line("It was tried and did not work; the message says why, and what to do.")
	r.item("2", "")
	r.line("It was called in a way that cannot be understood. Nothing was done.")
	r.environment()
	r.section("SEE ALSO")
	r.line("lakefs-mount-mount(1), lakefs-mount.yaml(5), mount.lakefs-mount(8), mount(8), fstab(5)")
	return page{"lakefs-mount", manCommands, r.String()}
}

func commandPage(c *cobra.Command) page {
	var r roff
	name := "lakefs-mount-" + c.Name()
	r.title(name, manCommands, manDate(), "User Commands")
	r.section("NAME")
	r.line(name + " - " + lowerFirst(c.Short))
	r.section("SYNOPSIS")
	line := c.UseLine()
	r.item("lakefs-mount "+c.Name(), strings.TrimPrefix(line, "lakefs-mount "+c.Name()))
	r.section("DESCRIPTION")
	description := c.Long
	if description == "" {
		description = c.Short + "."
	}
	r.text(description)
	r.options(c)
	if c.Example != "" {
		r.section("EXAMPLES")
		r.text(c.Example)
	}
	r.section("SEE ALSO")
	r.line("lakefs-mount(1), lakefs-mount.yaml(5)")
	return page{name, manCommands, r.String()}
}

// options tells each flag of c that help shows.
func (r *roff) options(c *cobra.Command) {
	r.section("OPTIONS")
	c.InitDefaultHelpFlag()
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			kind = "=" + kind
		}
		if f.NoOptDefVal != "" && kind != "" {
			kind = "[" + kind + "]"
		}
		r.item(name, kind)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
			usage += " (default " + f.DefValue + ")"
		}
		r.line(usage)
	})
}

// environment tells the variables that every command looks at.
func (r *roff) environment() {
	r.section("ENVIRONMENT")
	r.item("LAKEFS_MOUNT_NAME", "")
	r.line("Each setting of mount, in capitals and with _ for -: LAKEFS_MOUNT_READ_ONLY=true is --read-only. A variable that is no setting is an error.")
	r.item("AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL, AWS_CA_BUNDLE, …", "")
	r.line("As the AWS CLI has them.")
	r.item("HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "")
	r.line("Where requests to a store and a catalog go through.")
}

// filePage is the page of the settings file.
func filePage() page {
	var r roff
	r.title(settingsPage, manFiles, manDate(), "File Formats")
	r.section("NAME")
	r.line(settingsPage + " - settings of a mount of lakefs-mount")
	r.section("SYNOPSIS")
	r.item("lakefs-mount mount --config ", "FILE SOURCE MOUNTPOINT")
	r.section("DESCRIPTION")
	r.text(`A YAML file of NAME: VALUE. A flag (--write=none) and a mount option (write=none) win over
the environment (LAKEFS_MOUNT_WRITE=none), that over this file, and that over the
default. A key that is not known is an error that names the nearest one. What is in
force in a running mount is in its .lakefs/config.json.

    lakefs-mount config > lake.yaml

prints such a file with every setting, commented out.`)
	group := ""
	for s := range settings.All() {
		if s.Name == "config" {
			continue
		}
		if s.Group != group {
			group = s.Group
			r.section(strings.ToUpper(group))
		}
		r.item(s.Name+": ", "VALUE")
		r.line(settings.Sentence(s.Usage))
		r.lineBreak()
		r.line(s.Allowed())
	}
	r.section("SECRETS")
	r.item("secrets: ", "{NAME: {profile: PROFILE}}")
	r.line("The AWS profile of each name that the entry of a table may give as sqe.secret: that table is read and written with the profile's credentials. A table whose entry gives another name cannot be read, and says so.")
	r.section("SEE ALSO")
	r.line("lakefs-mount-mount(1), lakefs-mount-config(1)")
	return page{settingsPage, manFiles, r.String()}
}

// mountHelperPage is the page of what mount(8) calls.
func mountHelperPage() page {
	var r roff
	r.title(helperPage, manAdmin, manDate(), "System Administration")
	r.section("NAME")
	r.line(helperPage + ", mount.fuse.lakefs-mount - mount a data lake's catalog, for mount(8)")
	r.section("SYNOPSIS")
	r.item("mount -t lakefs-mount ", "[-o OPTIONS] SOURCE MOUNTPOINT")
	r.section("DESCRIPTION")
	r.text(`What mount(8) runs for the type lakefs-mount (and fuse.lakefs-mount), from the command
line, /etc/fstab or a unit of systemd. It mounts in the background, and returns when the
mount is ready, or with what is wrong and the remedy.

Each flag of lakefs-mount-mount(1) is an option, by its name without the dashes, with - or
_ between words: ro, allow_other, region=eu-central-1. config=FILE names a settings file.
A list is given as the option several times, and a comma in a value as \,. An option that
is not known is an error; those of mount(8) and of fstab's readers are passed over.

mount(8) has little environment: without HOME give state-dir too.`)
	r.section("EXAMPLES")
	r.text(`In /etc/fstab:

    s3://lake/wh/  /mnt/lake  lakefs-mount  config=/etc/lakefs-mount/lake.yaml,state-dir=/var/lib/lakefs-mount/lake,_netdev  0 0
    glue:  /mnt/glue  lakefs-mount  region=eu-central-1,ro,state-dir=/var/lib/lakefs-mount/glue,_netdev,x-systemd.automount  0 0`)
	r.section("SEE ALSO")
	r.line("lakefs-mount-mount(1), lakefs-mount.yaml(5), mount(8), fstab(5), systemd.mount(5)")
	return page{helperPage, manAdmin, r.String()}
}

func lowerFirst(text string) string { return strings.ToLower(text[:1]) + text[1:] }
