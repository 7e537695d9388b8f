package main

import (
	"os"
	"slices"
	"testing"
)

// TestMain has a test's binary be the program where the program starts itself anew
// (/proc/self/exe): taken for a call of the tests it would run them all, and each of these
// again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"ask", "render"}, os.Args[1]) {
		main()
	}
	os.Exit(m.Run())
}
