package settings

import (
	"errors"
	"strings"
	"time"
)

// The default patterns; fs has them as lists, with what they are of.
const (
	temporaryNames = "sed??????,XX??????,zi??????,tmp????????,tmp??????,.*.??????,*.o??????,*.r??????=*,*.gawk.??????,*.tmp,tmp_obj_??????,*.########,tmp_*=*" +
		",*~=*,tmp.??????????,*.part,*.partial,*-go-tmp-umask,tmp_idx_??????,tmp_pack_??????,pack-*.keep,packed-refs.new,t??????=HEAD,index.stash.*,.tmp-*-pack-*"
	localNames  = `.*.crc,.*.sw?,.*.sw?x,4913,.\#*,*.lock`
	backupNames = "*~,*.bak,*.orig"
)

// names: which names are of files that are no data yet, or never will be.
func names() []Setting {
	return []Setting{
		patterns("temporary-names", "new files of these names wait for their rename or removal, and are published as what they are renamed to: "+
			"patterns of * (one or more bytes), ? (a letter, a digit, _), # (a hexadecimal digit, one of them a letter), \\ before a sign that is meant itself; "+
			"PATTERN=NAME only beside a file of that NAME, where * is what it was in PATTERN (may be repeated; empty: none)",
			temporaryNames, func(v *Values) *[]string { return &v.TemporaryNames }),
		linger(),
		patterns("local-names", "new files of these names stay in this mount until they are renamed to another (may be repeated; empty: none)",
			localNames, func(v *Values) *[]string { return &v.LocalNames }),
		patterns("backup-names", "a published file that is renamed to such a name waits for the file that is written in its place (may be repeated; empty: none)",
			backupNames, func(v *Values) *[]string { return &v.BackupNames }),
	}
}

// linger is a duration of more than zero: a rename follows a close a moment later.
func linger() Setting {
	s := duration("temporary-linger", "how long a closed file of a temporary name, or a file that was renamed to a backup name, waits before it is published as it is called", "10s",
		func(v *Values) *time.Duration { return &v.TemporaryLinger })
	set := s.set
	s.set = func(v *Values, raw string) error {
		err := set(v, raw)
		if err == nil && v.TemporaryLinger == 0 {
			err = errors.New("want more than 0; with --temporary-names= no file waits")
		}
		return err
	}
	return s
}

// patterns is a List of patterns that "," parts; an empty one is a list of none.
func patterns(name, usage, def string, at func(*Values) *[]string) Setting {
	s := Setting{Name: name, Type: "LIST", Usage: usage, Default: def, List: true, set: func(v *Values, raw string) error {
		for one := range strings.SplitSeq(raw, ",") {
			if one != "" {
				*at(v) = append(*at(v), one)
			}
		}
		return nil
	}}
	return s.with(func(v *Values) any { return list(*at(v)) })
}
