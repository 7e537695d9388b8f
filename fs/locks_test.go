package fs

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func lock(owner, start, end uint64, typ uint32) heldLock {
	return heldLock{owner: owner, start: start, end: end, typ: typ}
}

func TestLocksConflict(t *testing.T) {
	k := lockKey{name: &name{}}
	for _, c := range []struct {
		held, want heldLock
		ok         bool
	}{
		{lock(1, 0, 9, syscall.F_WRLCK), lock(2, 5, 5, syscall.F_RDLCK), false},
		{lock(1, 0, 9, syscall.F_RDLCK), lock(2, 5, 5, syscall.F_RDLCK), true},
		{lock(1, 0, 9, syscall.F_RDLCK), lock(2, 5, 5, syscall.F_WRLCK), false},
		{lock(1, 0, 9, syscall.F_WRLCK), lock(2, 10, 20, syscall.F_WRLCK), true},
		{lock(1, 0, 9, syscall.F_WRLCK), lock(1, 0, 9, syscall.F_WRLCK), true},
	} {
		table := newLockTable()
		table.set(k, c.held)
		if ok, _ := table.set(k, c.want); ok != c.ok {
			t.Errorf("%+v beside %+v: %v, want %v", c.want, c.held, ok, c.ok)
		}
		if ok, _ := table.set(lockKey{name: k.name, flock: true}, c.want); !ok {
			t.Errorf("flock was refused because of a POSIX lock")
		}
		if ok, _ := table.set(lockKey{name: &name{}}, c.want); !ok {
			t.Errorf("a lock of another name is in the way")
		}
	}
}

// Ranges behave as a byte-by-byte model does.
func TestLocksAgainstModel(t *testing.T) {
	const size = 16
	k := lockKey{name: &name{}}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		table := newLockTable()
		var model [size]map[uint64]uint32 // byte → owner → type
		for i := range model {
			model[i] = map[uint64]uint32{}
		}
		for range 100 {
			a, b := uint64(r.IntN(size)), uint64(r.IntN(size))
			want := lock(uint64(r.IntN(3)), min(a, b), max(a, b), []uint32{syscall.F_RDLCK, syscall.F_WRLCK, syscall.F_UNLCK}[r.IntN(3)])
			free := true
			for i := want.start; i <= want.end && want.typ != syscall.F_UNLCK; i++ {
				for o, typ := range model[i] {
					free = free && (o == want.owner || typ == syscall.F_RDLCK && want.typ == syscall.F_RDLCK)
				}
			}
			if ok, _ := table.set(k, want); ok != free {
				t.Fatalf("seed %d: %+v: %v, want %v", seed, want, ok, free)
			}
			for i := want.start; free && i <= want.end; i++ {
				delete(model[i], want.owner)
				if want.typ != syscall.F_UNLCK {
					model[i][want.owner] = want.typ
				}
			}
		}
	}
}

func TestLockWaitEndsWithReleaseOrSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := lockKey{name: &name{}}
		table := newLockTable()
		table.set(k, lock(1, 0, 9, syscall.F_WRLCK))
		got := make(chan error, 1)
		go func() { got <- table.wait(context.Background(), k, lock(2, 0, 9, syscall.F_WRLCK)) }()
		synctest.Wait()
		select {
		case err := <-got:
			t.Fatalf("the wait ended (%v) while the lock was held", err)
		default:
		}
		table.release(k, 1)
		if err := <-got; err != nil {
			t.Errorf("got %v, want the lock", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		go func() { got <- table.wait(ctx, k, lock(3, 0, 0, syscall.F_RDLCK)) }()
		synctest.Wait()
		cancel()
		if err := <-got; !errors.Is(err, errInterrupted) {
			t.Errorf("got %v, want interrupted", err)
		}
		var out fuse.FileLock
		table.test(k, lock(3, 0, 0, syscall.F_RDLCK), &out)
		if out.Typ != syscall.F_WRLCK {
			t.Errorf("F_GETLK tells type %d, want the writer's", out.Typ)
		}
	})
}
