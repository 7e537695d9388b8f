package fs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"os"
	"slices"
	"sync"
)

// maxLocalDirectories bounds the directories that live in a mount alone.
const maxLocalDirectories = 100_000

// localDirectories are the directories that live in this mount alone: those of
// staging trees; and on a store that has none what mkdir made, until something is
// published in it (and a partition of the catalog's is registered), and what a removal
// emptied, until rmdir. No object stands for them, so that no engine ever reads one.
// Those that mkdir made survive a remount, in file ("": they do not). All methods may
// be called concurrently.
type localDirectories struct {
	file string

	mu   sync.Mutex
	dirs map[string]*localDirectory // with every directory above one
	made int
	// intents are the renames within staging trees that earlier mounts began.
	intents []treeIntent
}

type localDirectory struct {
	made     bool // by mkdir
	emptied  bool // by a removal
	half     bool // a transaction of which an overwrite published a part: another one would clear it
	children map[string]struct{}
}

// newLocalDirectories reads those that are in file. A file that cannot be read
// is no reason not to mount: only empty directories are in it.
func newLocalDirectories(file string) (*localDirectories, error) {
	l := &localDirectories{file: file, dirs: make(map[string]*localDirectory)}
	if file == "" {
		return l, nil
	}
	raw, err := os.ReadFile(file)
	if errors.Is(err, iofs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		l.replay(raw)
		err = l.compact()
	}
	if err != nil {
		err = fmt.Errorf("directories of an earlier mount: %w", err)
	}
	return l, err
}

// at returns the directory at path, known with all above it. The caller holds mu.
func (l *localDirectories) at(path string) *localDirectory {
	d := l.dirs[path]
	if d != nil {
		return d
	}
	d = &localDirectory{children: make(map[string]struct{})}
	l.dirs[path] = d
	if path != "" {
		dir, base := parent(path)
		l.at(dir).children[base] = struct{}{}
	}
	return d
}

// prune forgets path, and what is above it, as far as nothing speaks for it.
func (l *localDirectories) prune(path string) {
	for {
		d := l.dirs[path]
		if d == nil || d.made || d.emptied || len(d.children) > 0 {
			return
		}
		delete(l.dirs, path)
		if path == "" {
			return
		}
		dir, base := parent(path)
		delete(l.dirs[dir].children, base)
		path = dir
	}
}

// has reports whether path is such a directory, or lies above one.
func (l *localDirectories) has(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dirs[path] != nil
}

// children returns the names of those in dir, sorted.
func (l *localDirectories) children(dir string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.dirs[dir]
	if d == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(d.children))
}

// below returns the paths of all in and below dir.
func (l *localDirectories) below(dir string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.belowLocked(dir, nil)
}

func (l *localDirectories) belowLocked(dir string, to []string) []string {
	d := l.dirs[dir]
	if d == nil {
		return to
	}
	for base := range d.children {
		to = l.belowLocked(child(dir, base), append(to, child(dir, base)))
	}
	return to
}

// make adds the directory that mkdir makes.
func (l *localDirectories) make(path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made >= maxLocalDirectories {
		return errTooManyDirectories
	}
	if d := l.at(path); !d.made {
		d.made = true
		l.made++
		return l.note('+', path)
	}
	return nil
}

// halve notes that an overwrite published a part of the transaction path, which is made.
func (l *localDirectories) halve(path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.dirs[path]
	if d == nil || d.half {
		return nil
	}
	d.half = true
	return l.note('!', path)
}

// isHalf reports whether halve was called of path.
func (l *localDirectories) isHalf(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.dirs[path]
	return d != nil && d.half
}

// empty keeps a directory that a removal may have emptied.
func (l *localDirectories) empty(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.dirs) < maxLocalDirectories {
		l.at(path).emptied = true
	}
}

// remove forgets path, and what is in it.
func (l *localDirectories) remove(path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.drop(path)
	if dir, _ := parent(path); path != "" {
		l.prune(dir)
	}
	return err
}

// drop is remove without the directories above.
func (l *localDirectories) drop(path string) error {
	d := l.dirs[path]
	if d == nil {
		return nil
	}
	var problems []error
	for base := range d.children {
		problems = append(problems, l.drop(child(path, base)))
	}
	problems = append(problems, l.unmake(d, path))
	delete(l.dirs, path)
	if dir, base := parent(path); path != "" && l.dirs[dir] != nil {
		delete(l.dirs[dir].children, base)
	}
	return errors.Join(problems...)
}

func (l *localDirectories) unmake(d *localDirectory, path string) error {
	if !d.made {
		return nil
	}
	d.made = false
	l.made--
	return l.note('-', path)
}

// move gives path, and what is in it, another name. filled tells that the store
// has the directory there.
func (l *localDirectories) move(from, to string, filled bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	problems := []error{l.moveOne(from, to)}
	if filled {
		if d := l.dirs[to]; d != nil {
			problems = append(problems, l.unmake(d, to))
			d.emptied = false
			l.prune(to)
		}
	}
	if dir, _ := parent(from); from != "" {
		l.prune(dir)
	}
	return errors.Join(problems...)
}

// moveOne is move without the directories above.
func (l *localDirectories) moveOne(from, to string) error {
	d := l.dirs[from]
	if d == nil {
		return nil
	}
	var problems []error
	if d.made || d.emptied {
		was := l.at(to)
		was.emptied = was.emptied || d.emptied
		if d.made && !was.made {
			was.made = true
			l.made++
			problems = append(problems, l.note('+', to))
		}
	}
	for _, base := range slices.Collect(maps.Keys(d.children)) {
		problems = append(problems, l.moveOne(child(from, base), child(to, base)))
	}
	return errors.Join(append(problems, l.drop(from))...)
}

// filled notes that something was published in dir: the lake has it now, and all
// above it; but not kept, if that is among them, nor what is above that. "": none.
func (l *localDirectories) filled(dir, kept string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var problems []error
	for kept == "" || dir != kept {
		if d := l.dirs[dir]; d != nil {
			problems = append(problems, l.unmake(d, dir))
			d.emptied = false
			l.prune(dir)
		}
		if dir == "" {
			return errors.Join(problems...)
		}
		dir, _ = parent(dir)
	}
	return errors.Join(problems...)
}

// note appends a change to file: "+", "-" or "!" and the path, a line each (">" and "=" are
// those of a treeIntent). The caller holds mu.
func (l *localDirectories) note(sign byte, path string) error {
	return l.append(noteLine(sign, path))
}

func noteLine(sign byte, path string) []byte {
	line, err := json.Marshal(path)
	if err != nil {
		panic(err) // a string always encodes
	}
	return append(append([]byte{sign}, line...), '\n')
}

// replay reads the notes of an earlier mount.
func (l *localDirectories) replay(raw []byte) {
	for line := range bytes.Lines(raw) {
		if line[0] == '>' || line[0] == '=' {
			l.replayIntent(line)
			continue
		}
		var path string
		if len(line) < 2 || json.Unmarshal(line[1:], &path) != nil {
			continue // cut off by a crash
		}
		switch d := l.dirs[path]; {
		case line[0] == '+' && l.made < maxLocalDirectories && (d == nil || !d.made):
			l.at(path).made = true
			l.made++
		case line[0] == '!' && d != nil:
			d.half = true
		case line[0] == '-' && d != nil && d.made:
			d.made = false
			l.made--
			l.prune(path)
		}
	}
}

// compact replaces file by what is left of its notes.
func (l *localDirectories) compact() error {
	var b bytes.Buffer
	for _, p := range slices.Sorted(maps.Keys(l.dirs)) {
		if l.dirs[p].made {
			b.Write(noteLine('+', p))
		}
		if l.dirs[p].half {
			b.Write(noteLine('!', p))
		}
	}
	for _, t := range l.intents {
		b.Write(intentLine('>', t))
	}
	if err := os.WriteFile(l.file+".new", b.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(l.file+".new", l.file)
}
