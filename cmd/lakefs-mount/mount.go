package main

import (
	"context"
	"iter"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

const mountLong = `Mounts the catalog SOURCE at the directory MOUNTPOINT.

SOURCE is an AWS Glue catalog: glue: is that of the credentials' own account,
glue:ACCOUNT that of another. Or it is a root of JSON manifests,
<SOURCE>/<database>/<table>/_sqe/table.json: a local folder, or s3://BUCKET/PREFIX/
on AWS or, with --endpoint-url, on a store that speaks S3. Credentials come from
where the AWS CLI takes them.

It stays in the foreground until the mount ends: by "lakefs-mount unmount", by
SIGINT or SIGTERM (what is being published is finished first, with a limit; a
second signal, a second later or more, ends it at once), or by umount. SIGHUP drops cached metadata,
SIGUSR1 writes the mount's state to the log. With --daemon it returns when the
mount is ready.

MOUNTPOINT /dev/fd/N is the descriptor N of /dev/fuse, which another program has
opened, mounted and passed on; --state-dir has to be given then.

Each flag can be given in the environment, --read-only as LAKEFS_MOUNT_READ_ONLY=true,
and in a settings file (--config), as read-only: true.`

// request is a mount that was asked for.
type request struct {
	source     source
	mountpoint string // absolute
	settings   settings.Resolved
	names      heldNames
	aws        *awsConfigs // of a source in S3
	endpoint   string      // of a source in S3: the store's base URL; "": AWS
	// glueEndpoint is the base URL of a Glue catalog; "": AWS
	glueEndpoint string
	ready        *os.File // of a daemon: where to tell that it is ready; nil: in the foreground
	options      bool     // what the settings have from flags was given as mount options
	environ      []string // of the program
}

func (p *program) mountCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mount [flags] SOURCE MOUNTPOINT",
		Short: "Mount a catalog",
		Long:  mountLong,
		Example: `    lakefs-mount mount glue: ~/lake
    lakefs-mount mount --database='sales*' --read-only glue:123456789012 ~/lake
    lakefs-mount mount s3://lake/wh/ ~/lake`,
		Args:              arguments(2, 2),
		ValidArgsFunction: completeMount,
	}
	p.addSettings(cmd)
	var readyFD int
	cmd.Flags().IntVar(&readyFD, readyFlag, 0, "")
	_ = cmd.Flags().MarkHidden(readyFlag) // it exists
	var options bool
	cmd.Flags().BoolVar(&options, optionsFlag, false, "")
	_ = cmd.Flags().MarkHidden(optionsFlag) // it exists
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := p.newRequest(cmd.Context(), args[0], args[1], settings.FromFlags(cmd.Flags()))
		if err != nil {
			return err
		}
		if readyFD > 0 {
			r.ready = os.NewFile(uintptr(readyFD), "ready")
		}
		r.options = options
		return p.mount(cmd.Context(), r)
	}
	return cmd
}

// newRequest checks what can be checked without touching anything.
func (p *program) newRequest(ctx context.Context, source, mountpoint string, given settings.Given) (*request, error) {
	resolved, err := settings.Resolve(given, p.environ)
	if err != nil {
		return nil, usageError{err}
	}
	r := &request{settings: resolved, environ: p.environ}
	if r.names, err = parseNames(resolved); err != nil {
		return nil, usageError{err}
	}
	if err = p.setSource(ctx, r, source); err != nil {
		return nil, err
	}
	if r.mountpoint, err = mountPoint(mountpoint); err != nil {
		return nil, err
	}
	return r, nil
}

// setSource parses SOURCE, and of one in S3 reads the AWS configuration; it asks no
// store anything.
func (p *program) setSource(ctx context.Context, r *request, text string) error {
	var err error
	if r.source, err = parseSource(text); err != nil {
		return err
	}
	for use, names := range withoutUse(r, settings.FromFlag) {
		return usagef("--%s: SOURCE is %s, %s, and this is for %s; leave it out", strings.Join(names, ", --"), r.source.kind(), r.source, use)
	}
	if r.source.onS3() {
		return p.loadAWS(ctx, r)
	}
	return nil
}

// withoutUse yields the names of the settings that came from one of the sources
// and have no meaning for r's SOURCE, by what they are for.
func withoutUse(r *request, sources ...settings.Source) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		if names := r.settings.S3Settings(sources...); len(names) > 0 && !r.source.onS3() &&
			!yield("a lake in S3 (s3://BUCKET/PREFIX/, glue:)", names) {
			return
		}
		if names := r.settings.GlueSettings(sources...); len(names) > 0 && !r.source.glue {
			yield("a Glue catalog (glue:)", names)
		}
	}
}

// mount serves the request here, or in a daemon of its own.
func (p *program) mount(ctx context.Context, r *request) error {
	if r.settings.Daemon && r.ready == nil {
		return p.daemonize(ctx, r)
	}
	return p.serve(ctx, r)
}

// styleFlags are what mount(8) gives its helpers.
type styleFlags struct {
	options []string
	fake    bool
}

func addStyleFlags(cmd *cobra.Command) *styleFlags {
	var s styleFlags
	var ignoredSwitch bool
	var ignoredText string
	f := cmd.Flags()
	f.StringArrayVarP(&s.options, "options", "o", nil, "mount `OPTIONS`, as mount(8) has them: ro,allow_other,uid=1000,…")
	f.BoolVarP(&s.fake, "fake", "f", false, "check the options, mount nothing")
	f.BoolVarP(&ignoredSwitch, "sloppy", "s", false, "")
	f.BoolVarP(&ignoredSwitch, "no-mtab", "n", false, "")
	f.BoolVarP(&ignoredSwitch, "verbose", "v", false, "")
	f.StringVarP(&ignoredText, "types", "t", "", "")
	f.StringVarP(&ignoredText, "namespace", "N", "", "")
	for _, name := range []string{"fake", "sloppy", "no-mtab", "verbose", "types", "namespace"} {
		_ = f.MarkHidden(name) // it exists
	}
	return &s
}

// mountHelperCommand is the program as mount.lakefs-mount.
func (p *program) mountHelperCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:           p.name + " SOURCE MOUNTPOINT [-o OPTIONS]",
		Short:         "Mount a catalog for mount(8)",
		Args:          arguments(2, 2),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	style := addStyleFlags(cmd)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.mountStyle(cmd.Context(), style, args[0], args[1])
	}
	return cmd
}

// mountStyle mounts as mount(8) does: in the background, unless the option
// daemon=false says otherwise.
func (p *program) mountStyle(ctx context.Context, style *styleFlags, source, mountpoint string) error {
	given, err := settings.ParseOptions(style.options)
	if err != nil {
		return usageError{err}
	}
	if _, said := given["daemon"]; !said {
		given["daemon"] = []string{"true"}
	}
	// mount -t fuse.lakefs-mount may hand the source over as "lakefs-mount#SOURCE".
	source = strings.TrimPrefix(source, "lakefs-mount#")
	r, err := p.newRequest(ctx, source, mountpoint, given)
	if err != nil || style.fake {
		return err
	}
	r.options = true
	return p.mount(ctx, r)
}
