package catalogview

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strconv"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// maxNamed bounds the names that a Status lists.
const maxNamed = 100

// Status is what the mount makes of a directory, for its status.json.
type Status struct {
	Path       string `json:"path"`
	Kind       string `json:"kind"` // "catalog", "database", else the table's kind
	Format     string `json:"format,omitempty"`
	FormatFrom string `json:"format_from,omitempty"`
	// Location is the one in use: links resolved, and of this very directory.
	Location string `json:"location,omitempty"`
	// EntryLocation is the table's as its entry has it, but for credentials in it.
	EntryLocation string `json:"entry_location,omitempty"`
	Readable      bool   `json:"readable"`
	Writable      bool   `json:"writable"`
	Reason        string `json:"reason,omitempty"` // why not

	Databases *int `json:"databases,omitempty"` // of a catalog
	Tables    *int `json:"tables,omitempty"`    // of a database
	// UnreachableNames of a catalog or database are databases or tables that are not
	// shown, for their names can be no file's.
	UnreachableNames int `json:"unreachable_names,omitempty"`

	// Of a table: who knows its partitions ("catalog", "projection", "" for the
	// directories), where a resource link leads (account:database.table), what is to
	// be known besides, and that access may be Lake Formation's.
	PartitionsFrom string   `json:"partitions_from,omitempty"`
	PartitionKeys  []string `json:"partition_keys,omitempty"` // their names, in order
	ResourceLink   string   `json:"resource_link,omitempty"`
	Notes          []string `json:"notes,omitempty"`
	LakeFormation  *bool    `json:"lake_formation,omitempty"`

	// Of a table whose partitions are in the catalog: whether their input formats
	// are several, and how many have each, "" for none, which is no format of its
	// own (rule 58); null past maxFormats partitions. PartitionFormats counts the
	// formats that their files are read as (as Format), the table's where they have none.
	MultiFormat      json.RawMessage `json:"hasMultiFormatPartitions,omitempty"`
	Formats          map[string]int  `json:"formats,omitempty"`
	PartitionFormats map[string]int  `json:"partition_formats,omitempty"`

	// Of a directory of such partitions: directories that the catalog does not know
	// as partitions ("repair" would add them), of a projection those out of range;
	// partitions registered here whose directory has no objects; projected values
	// beyond what is listed, and that the values of a key are not known (injected).
	Unregistered    []string `json:"unregistered,omitempty"`
	UnregisteredAll int      `json:"unregistered_count,omitempty"`
	WithoutObjects  []string `json:"without_objects,omitempty"`
	// Leaving are partitions that were removed in the mount and are not shown, and since
	// when: the catalog has them yet.
	Leaving map[string]time.Time `json:"leaving,omitempty"`
	// Rejected are entries of the table, or of the database's tables, that were to be
	// written and were refused, until a write of each succeeds.
	Rejected []RejectedEntry `json:"entry_rejected,omitempty"`
	// Of a table: registered partitions whose entry cannot be used, and why the first.
	Unusable       int    `json:"unusable_partitions,omitempty"`
	UnusableReason string `json:"unusable_reason,omitempty"`
	NotListed      int64  `json:"not_listed,omitempty"`
	Injected       bool   `json:"injected,omitempty"`

	// Of the directory's own names. Lists hold the first hundred.
	Partitions      int      `json:"partitions"`       // directories that are partitions
	UnreachableKeys int      `json:"unreachable_keys"` // no path leads to them
	Shadowed        int      `json:"shadowed"`         // keys named .lakefs
	HiddenObjects   []string `json:"hidden_objects,omitempty"`
	Unparsable      []string `json:"unparsable,omitempty"` // partitions whose value is not of its key's type
}

// Status tells of the directory at a path. What cannot be read, or asked for, is no
// error but Readable false with the reason; errors are ErrNotExist, the caller's
// interrupt, and those of a path that can be none. With ErrNotExist for a directory
// below a table it has what is known of it all the same, as of one that is to be made.
func (v *View) Status(ctx context.Context, p string) (Status, error) {
	comps, err := split(p)
	if err != nil {
		return Status{}, err
	}
	s := Status{Path: p, Readable: true}
	switch len(comps) {
	case 0:
		s.Kind = "catalog"
		l, err := v.getDatabases(ctx)
		if err != nil {
			return s.untold(ctx, err)
		}
		n := len(l.all)
		s.Databases, s.UnreachableNames = &n, l.unreachable
		return s, nil
	case 1:
		return v.statusOfDatabase(ctx, comps[0], s)
	}
	if len(comps) == 2 {
		s.Rejected = v.rejected.of(p)
	}
	return v.statusBelow(ctx, comps, s)
}

func (v *View) statusOfDatabase(ctx context.Context, name string, s Status) (Status, error) {
	s.Kind, s.Rejected = "database", v.rejected.of(name)
	_, err := v.getDatabase(ctx, name)
	if errors.Is(err, objectstore.ErrNotExist) {
		return Status{}, err
	}
	var l tableList
	if err == nil {
		l, err = v.getTables(ctx, name)
	}
	if err != nil {
		return s.untold(ctx, err)
	}
	n := len(l.all)
	s.Tables, s.UnreachableNames = &n, l.unreachable
	return s, nil
}

// untold is the status of what an error keeps from being told in whole: the reason is
// what its reader came for. Absence and the caller's interrupt stay errors.
func (s Status) untold(ctx context.Context, err error) (Status, error) {
	if errors.Is(err, objectstore.ErrNotExist) || errors.Is(context.Cause(ctx), context.Canceled) {
		return s, err
	}
	s.Readable, s.Writable, s.Reason = false, false, err.Error()
	var verdict *VerdictError
	if errors.As(err, &verdict) {
		s.Reason = verdict.Reason
	}
	return s, nil
}

func (v *View) statusBelow(ctx context.Context, comps []string, s Status) (Status, error) {
	b, err := v.below(ctx, comps)
	if b.entry == nil {
		s.Kind = string(table.Broken)
		if errors.Is(err, objectstore.ErrNotExist) {
			return Status{}, err
		}
		return s.untold(ctx, err)
	}
	t := b.table
	s.Kind, s.Format, s.FormatFrom, s.EntryLocation = string(t.Kind), t.Format, t.FormatFrom, maskUserinfo(t.Location)
	s.Readable, s.Writable, s.Reason = t.Readable, t.Writable, t.Reason
	s.PartitionsFrom, s.Notes, s.LakeFormation = string(t.Partitions), t.Notes, t.LakeFormation
	for _, k := range t.Keys {
		s.PartitionKeys = append(s.PartitionKeys, k.Name)
	}
	if t.Target != nil {
		s.ResourceLink = t.Target.CatalogID + ":" + t.Target.Database + "." + t.Target.Name
	}
	if !t.Readable {
		return s, nil
	}
	if b.part != nil {
		s.Format, s.FormatFrom, s.EntryLocation = b.part.Format, b.part.FormatFrom, maskUserinfo(b.part.Location)
	}
	if b.part != nil && b.part.refused != nil {
		s.Readable, s.Writable, s.Reason = false, false, b.part.refused.reason
		return s, nil
	}
	if errors.Is(err, objectstore.ErrNotExist) {
		return Status{}, err
	}
	if err != nil {
		return s.untold(ctx, err)
	}
	s.Location = v.at.show(b.at, b.tail)
	if t.Writable && len(b.comps) > 0 {
		var verdict *VerdictError
		if _, err := v.writable(ctx, join(s.Path, "x")); errors.As(err, &verdict) {
			s.Writable, s.Reason = false, verdict.Reason
		}
	}
	return v.countBelow(ctx, b, s)
}

func (v *View) countBelow(ctx context.Context, b below, s Status) (Status, error) {
	level, err := b.partitionLevels(len(b.comps))
	if err != nil {
		return s.untold(ctx, err)
	}
	var count tally
	counted := s
	err = v.listAnew(ctx, b, &count, func(n Node, _ error) bool {
		if n.Kind == KindDirectory && level == len(b.comps) {
			counted.countPartition(n, level)
		}
		return true
	})
	if err != nil && !errors.Is(err, objectstore.ErrNotExist) {
		return s.untold(ctx, err) // part of a count is none
	}
	s = counted
	s.UnreachableKeys, s.Shadowed = count.unreachable, count.shadowed
	s.HiddenObjects = count.beside[:min(len(count.beside), maxNamed)]
	s.UnregisteredAll, s.Unregistered = len(count.unregistered), count.unregistered[:min(len(count.unregistered), maxNamed)]
	s.NotListed, s.Injected = count.unlisted, count.injected
	s.WithoutObjects = count.empty[:min(len(count.empty), maxNamed)]
	s.Leaving = v.leavingBelow(b.path)
	if len(b.comps) == 0 && count.listed != nil {
		s.countFormats(count.listed)
		s.Unusable, s.UnusableReason = count.listed.broken, count.listed.reason
	}
	return s, err
}

// maxFormats bounds the partitions whose formats are counted.
const maxFormats = 100_000

// countFormats: rule 58.
func (s *Status) countFormats(l *partitionList) {
	if l.cost() > maxFormats {
		s.MultiFormat = json.RawMessage("null")
		return
	}
	s.Formats, s.PartitionFormats = make(map[string]int), make(map[string]int)
	l.each(func(p table.Partition) bool {
		s.Formats[p.InputFormat]++
		s.PartitionFormats[p.Format]++
		return true
	})
	formats := len(s.Formats)
	if s.Formats[""] > 0 {
		formats--
	}
	s.MultiFormat = strconv.AppendBool(nil, formats > 1)
}

func (s *Status) countPartition(n Node, level int) {
	name := path.Base(n.Path)
	_, err := n.Table.ParsePartition(name, level)
	if errors.Is(err, table.ErrNotPartition) {
		return
	}
	s.Partitions++
	if err != nil && len(s.Unparsable) < maxNamed {
		s.Unparsable = append(s.Unparsable, name)
	}
}
