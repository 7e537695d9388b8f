//go:build race

package render

// shadow is how much address space a byte of the heap takes: the race detector keeps a
// record of each.
const shadow = 8
