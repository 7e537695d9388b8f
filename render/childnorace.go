//go:build !race

package render

// shadow is how much address space a byte of the heap takes.
const shadow = 1
