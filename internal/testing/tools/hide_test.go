package tools_test

import (
	"regexp"
	"testing"
)

// hide replaces each random part of a name by XXXXXX.
func (c tool) hide(t *testing.T) func(string) string {
	t.Helper()
	if c.random == "" {
		return func(s string) string { return s }
	}
	random := regexp.MustCompile(c.random)
	return func(s string) string {
		groups := random.FindStringSubmatchIndex(s)
		for i := len(groups) - 2; i >= 2; i -= 2 {
			if groups[i] >= 0 {
				s = s[:groups[i]] + "XXXXXX" + s[groups[i+1]:]
			}
		}
		return s
	}
}
