package fs

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// The lines of ctl that run as jobs.
const (
	jobRepair    = "repair"
	jobSetFormat = "set-format"
)

// jobLine is such a line: VERB [--dry-run] [--job ID] [--] PATH, and with set-format
// a FORMAT behind the PATH. A PATH in double quotes is read as Go reads a string (so as
// the log and %q print it); else that of repair is the rest of the line, spaces and
// all, and that of set-format ends at the first space.
type jobLine struct {
	id     string // given, or made
	dryRun bool
	path   string
	format string
}

var jobID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// parseJob reads what stands behind the verb. The line that it returns with an error
// has an id: what asked by it is told the reason.
func parseJob(verb, rest string) (line jobLine, err error) {
	defer func() {
		if line.id == "" {
			line.id = uuid.NewString()
		}
	}()
	if line, rest, err = jobOptions(verb, rest); err != nil {
		return line, err
	}
	switch {
	case strings.HasPrefix(rest, `"`):
		if line.path, rest, err = quotedPath(rest); err != nil {
			return line, err
		}
	case verb == jobRepair:
		line.path, rest = rest, ""
	default:
		line.path, rest, _ = strings.Cut(rest, " ")
	}
	line.path, line.format = strings.Trim(line.path, "/"), strings.TrimSpace(rest)
	switch {
	case line.path == "":
		return line, fmt.Errorf("%s: no PATH is given: %w", verb, errCommand)
	case verb == jobRepair && line.format != "":
		return line, fmt.Errorf("%s %q: what is %q behind it: %w", verb, line.path, line.format, errCommand)
	case verb == jobSetFormat && line.format == "":
		return line, fmt.Errorf("%s %q: no FORMAT is given (a PATH with spaces stands in double quotes): %w", verb, line.path, errCommand)
	}
	return line, nil
}

func jobOptions(verb, rest string) (line jobLine, after string, err error) {
	for {
		rest = strings.TrimLeft(rest, " ")
		word, behind, _ := strings.Cut(rest, " ")
		switch {
		case word == "--":
			return line, strings.TrimLeft(behind, " "), nil
		case word == "--dry-run" && verb == jobRepair:
			line.dryRun = true
		case word == "--job":
			line.id, behind, _ = strings.Cut(strings.TrimLeft(behind, " "), " ")
			if id := line.id; !jobID.MatchString(id) {
				line.id = ""
				return line, "", fmt.Errorf("--job %q: 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-': %w", id, errCommand)
			}
		case strings.HasPrefix(word, "--"):
			return line, "", fmt.Errorf("%s: option %q: %w", verb, word, errCommand)
		default:
			return line, rest, nil
		}
		rest = behind
	}
}

// quotedPath takes a string in double quotes off the front of text.
func quotedPath(text string) (path, rest string, err error) {
	quoted, err := strconv.QuotedPrefix(text)
	if err == nil {
		path, err = strconv.Unquote(quoted)
	}
	if err != nil {
		return "", "", fmt.Errorf("%s: not a string in double quotes: %w", text, errCommand)
	}
	return path, text[len(quoted):], nil
}

// runJob runs a line as a job, whose outcome jobs.json tells of. An unmount waits for it.
func (f *FS) runJob(ctx context.Context, verb, rest string) error {
	line, err := parseJob(verb, rest)
	job := f.jobs.begin(line.id, verb, line.path)
	f.publishing.begin()
	defer f.publishing.end()
	var result any
	switch {
	case err != nil:
	case verb == jobRepair:
		result, err = f.repair(ctx, line, job)
	default:
		err = f.setFormat(ctx, line)
	}
	job.end(result, err)
	return err
}

// writesCatalog tells why the catalog is not changed through this mount; nil: it may be.
func (f *FS) writesCatalog() error {
	switch {
	case f.ReadOnly:
		return errReadOnly
	case f.Write == WriteNone:
		return fmt.Errorf("nothing is changed: %w=none", errWriteLevel)
	}
	return nil
}

// repair registers what lies in the store. That a part of it is not is an error.
func (f *FS) repair(ctx context.Context, line jobLine, job *job) (any, error) {
	if strings.Count(line.path, "/") != 1 {
		return nil, fmt.Errorf("repair %q: not the path of a table, which is DATABASE/TABLE: %w", line.path, errInvalid)
	}
	if err := f.writesCatalog(); err != nil && !line.dryRun {
		return nil, fmt.Errorf("repair %q: %w", line.path, err)
	}
	done, err := f.View.Repair(ctx, line.path, catalogview.Repair{
		DryRun: line.dryRun,
		Progress: func(looked, missing, registered int) {
			total := 0 // how many directories there are shows when the first is registered
			if registered > 0 {
				total = looked + missing
			}
			job.progress(int64(looked+registered), int64(total))
		},
	})
	f.Refresh(line.path)
	if err != nil && done.Looked == 0 {
		return nil, err
	}
	if err == nil && len(done.Failed) > 0 {
		first := done.Failed[0]
		err = fmt.Errorf("repair %q: %d of %d partitions could not be registered, the first %q: %s", line.path, done.Missing-done.Registered, done.Missing, first.Path, first.Reason)
	}
	return done, err
}

// setFormat changes the formats in one entry (rule 59).
func (f *FS) setFormat(ctx context.Context, line jobLine) error {
	if err := f.writesCatalog(); err != nil {
		return fmt.Errorf("set-format %q: %w", line.path, err)
	}
	change, err := table.ParseFormatChange(line.format)
	if err != nil {
		return fmt.Errorf("set-format %q: %w: %w", line.path, err, errInvalid)
	}
	err = f.View.SetFormat(ctx, line.path, change)
	f.Refresh(line.path)
	return err
}
