package fs

import (
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
)

// What a close that has something to publish costs below /proc.
func BenchmarkClosing(b *testing.B) {
	p := processTable{root: "/proc"}
	child := exec.CommandContext(b.Context(), "sleep", "600")
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill() // its end is waited for
		_ = child.Wait()
	}()
	pid := uint32(child.Process.Pid)
	b.Run("aside", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.closing(pid, 77).answer(procLimit)
		}
	})
	b.Run("ending", func(b *testing.B) {
		for b.Loop() {
			p.ending(pid)
		}
	})
	b.Run("held", func(b *testing.B) {
		for b.Loop() {
			p.held(pid, 77, new(atomic.Bool))
		}
	})
	b.Run("children", func(b *testing.B) {
		for b.Loop() {
			p.children(pid)
		}
	})
}
