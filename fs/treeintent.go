package fs

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// A directory of a staging tree is renamed by a new record of each of its files. A job
// takes a directory that has its final name for whole, so the rename is noted, in the
// file of the local directories, before the first record changes; what a crash left of
// it the next mount finishes.

// treeIntent is the rename of a directory within staging trees. Names are bytes: not
// all are UTF-8.
type treeIntent struct {
	From, To       []byte
	FromKey, ToKey []byte // of the directories, as if they were the store's
	ToBucket       []byte
	PrefixBucket   []byte // of the table that To lies in
	PrefixKey      []byte
}

// begin notes that t is under way.
func (l *localDirectories) begin(t treeIntent) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(intentLine('>', t))
}

// finish notes that it is over.
func (l *localDirectories) finish(t treeIntent) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(intentLine('=', t))
}

// unfinished returns the renames that earlier mounts did not finish, in their order.
func (l *localDirectories) unfinished() []treeIntent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.intents
}

func intentLine(sign byte, t treeIntent) []byte {
	line, err := json.Marshal(t)
	if err != nil {
		panic(err) // bytes always encode
	}
	return append(append([]byte{sign}, line...), '\n')
}

// replayIntent reads the note of an intent.
func (l *localDirectories) replayIntent(line []byte) {
	var t treeIntent
	if json.Unmarshal(line[1:], &t) != nil {
		return // cut off by a crash
	}
	kept := l.intents[:0]
	for _, old := range l.intents {
		if string(old.From) != string(t.From) {
			kept = append(kept, old)
		}
	}
	l.intents = kept
	if line[0] == '>' {
		l.intents = append(l.intents, t)
	}
}

// append writes a line to file. The caller holds mu: the file is local, and the line
// is short.
func (l *localDirectories) append(line []byte) error {
	if l.file == "" {
		return nil
	}
	f, err := os.OpenFile(l.file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("keep a directory: %w", err)
	}
	_, err = f.Write(line)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// intent describes the rename.
func (t *treeMove) intent(from objectstore.Location, prefix objectstore.Location) treeIntent {
	return treeIntent{
		From: []byte(t.from), To: []byte(t.to), FromKey: []byte(from.Key), ToKey: []byte(t.loc.Key),
		ToBucket: []byte(t.loc.Bucket), PrefixBucket: []byte(prefix.Bucket), PrefixKey: []byte(prefix.Key),
	}
}

// moved is where a record below From goes; ok is false for any other.
func (t treeIntent) moved(r staging.Record) (w staging.NewWrite, ok bool) {
	if !below(r.Path, string(t.From)) {
		return w, false
	}
	w = asBefore(r)
	w.Path = string(t.To) + strings.TrimPrefix(r.Path, string(t.From))
	w.Prefix = objectstore.Location{Bucket: string(t.PrefixBucket), Key: string(t.PrefixKey)}
	w.Target = objectstore.Location{Bucket: string(t.ToBucket), Key: string(t.ToKey) + strings.TrimPrefix(r.Target.Key, string(t.FromKey))}
	return w, true
}

// finishTreeMoves finishes the renames within staging trees that earlier mounts began.
func (f *FS) finishTreeMoves() {
	for _, t := range f.local.unfinished() {
		for _, w := range f.Area.Files() {
			r := w.Record()
			to, ok := t.moved(r)
			if !ok || !w.Recovered() || r.Hold != staging.Local {
				continue
			}
			if err := w.SetTarget(to); err != nil {
				f.Log.Error("a file stays where a renamed directory was", attrPath(r.Path), slog.Any("error", err))
			}
		}
		f.warnLocal(string(t.To), f.local.move(string(t.From), string(t.To), false))
		f.warnLocal(string(t.To), f.local.make(string(t.To)))
		f.warnLocal(string(t.To), f.local.finish(t))
	}
}
